import { memo, useId, useMemo } from 'react';
import { cx } from '@emotion/css';

import type { Mode, Settings } from '../../client';
import { Chart, ChartFigure, ChartGrid, type LegendItem } from '../../components/Chart';
import { number } from '../../lib/format';
import { levelsName, type Level } from '../../lib/level';
import { modeName } from '../../lib/names';
import { stylesOf } from '../../lib/styles';
import { draw, type Beside, type Series } from './series';

interface CurvesProps {
  series: Series[];
  levels: Level[];
  modes: Mode[];
  beside: Beside;
  /** The number of runs of a complete point. */
  seeds: number;
  slo?: Settings['slo'];
  /** Whether the measured target is a simulated cluster, too. */
  measuredOnSimulated: boolean;
  /** Whether the curves belong to an earlier question. */
  isEarlier: boolean;
}

/** Each figure against the level. */
export const Curves = memo(function Curves(props: CurvesProps) {
  const { series, levels, slo, isEarlier } = props;
  const styles = useStyles();
  return (
    <div className={cx(isEarlier && styles.earlier)} aria-busy={isEarlier}>
      <ChartGrid least={380} most={3} legend={legendOf(props)}>
        {series.map((one) => (
          <Curve key={one.figure.key} series={one} levels={levels} slo={slo} />
        ))}
      </ChartGrid>
    </div>
  );
});

function Curve({ series, levels, slo }: { series: Series; levels: Level[]; slo?: Settings['slo'] }) {
  const id = useId();
  const { name, heading } = series.figure;
  const drawing = useMemo(() => draw(series, levels, slo), [series, levels, slo]);
  return (
    <ChartFigure
      id={id}
      caption={
        <>
          {heading} <i>simulated</i>
        </>
      }
    >
      <Chart label={`${name} by ${levelsName(levels).toLowerCase()}`} {...drawing} />
    </ChartFigure>
  );
}

/** The legend of the lines, with which of them were simulated. */
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

const useStyles = stylesOf(() => ({
  earlier: { opacity: 0.45 },
}));
