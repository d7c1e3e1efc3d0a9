import React, { memo, useState } from 'react';
import { css, cx } from '@emotion/css';

import { useStyles2 } from '@grafana/ui';

import type { Mode, Settings } from '../../client';
import { Curves as CurveGrid, levels as levelScale, type LegendItem } from '../../components/Curve';
import { number } from '../../lib/format';
import { modeName } from '../../lib/names';
import { Chart, type Looking } from './Chart';
import type { Beside, Series } from './series';

interface CurvesProps {
  series: Series[];
  levels: number[];
  modes: Mode[];
  beside: Beside;
  /** How many runs a point has when all are computed. */
  seeds: number;
  slo?: Settings['slo'];
  /** Whether the target on which was measured is a simulated cluster, too. */
  measuredOnSimulated: boolean;
  /** Whether these answer another question than the one that is asked. */
  isEarlier: boolean;
}

/** Each figure against concurrency. */
export const Curves = memo(function Curves(props: CurvesProps) {
  const { series, levels, modes, slo, isEarlier } = props;
  const styles = useStyles2(getStyles);
  const [looking, look] = useState<Looking>();
  const x = levelScale(levels);
  return (
    <div className={cx(isEarlier && styles.earlier)} aria-busy={isEarlier}>
      <CurveGrid least={380} legend={legendOf(props)}>
        {series.map((one) => (
          <Chart
            key={one.figure.key}
            series={one}
            levels={levels}
            x={x}
            modes={modes}
            slo={slo}
            looking={looking}
            onLook={look}
          />
        ))}
      </CurveGrid>
    </div>
  );
});

/** Whose the lines are, and which of them were simulated. */
function legendOf({ modes, series, beside, seeds, measuredOnSimulated }: CurvesProps): LegendItem[] {
  const has = (source: string) => series.some(({ values }) => values.some((value) => value.source === source));
  const kinds: Array<LegendItem & { isShown: boolean }> = [
    {
      key: 'simulated',
      isShown: true,
      words: (
        <>
          <b>simulated</b>
          {seeds > 1 && `: mean of ${number(seeds)} runs, band from lowest to highest`}
        </>
      ),
    },
    {
      key: 'recorded',
      isShown: has('recorded'),
      look: 'dashed',
      words: (
        <>
          <b>recorded</b>: {beside.recorded?.title}
        </>
      ),
    },
    {
      key: 'measured',
      isShown: has('measured'),
      look: 'rings',
      words: (
        <>
          <b>measured</b> on this target
          {measuredOnSimulated && ', a simulated cluster'}
        </>
      ),
    },
  ];
  return [
    ...modes.map((mode) => ({ key: mode, tone: mode, words: modeName(mode) })),
    ...kinds.filter(({ isShown }) => isShown),
  ];
}

const getStyles = () => ({
  earlier: css({ opacity: 0.45 }),
});
