import React, { memo, useState } from 'react';
import { css, cx } from '@emotion/css';

import type { GrafanaTheme2 } from '@grafana/data';
import { useStyles2 } from '@grafana/ui';

import type { Mode, Settings } from '../../client';
import { CurveSign, levels as levelScale } from '../../components/Curve';
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
      <Legend {...props} />
      <div className={styles.curves}>
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
      </div>
    </div>
  );
});

/** Whose the lines are, and which of them were simulated. */
function Legend({ modes, series, beside, seeds, measuredOnSimulated }: CurvesProps) {
  const styles = useStyles2(getStyles);
  const has = (source: string) => series.some(({ values }) => values.some((value) => value.source === source));
  return (
    <ul className={styles.legend} aria-label="Lines">
      {modes.map((mode) => (
        <li key={mode}>
          <CurveSign tone={mode} /> {modeName(mode)}
        </li>
      ))}
      <li>
        <CurveSign /> <b>simulated</b>
        {seeds > 1 && `: mean of ${number(seeds)} runs, band from the least to the largest`}
      </li>
      {has('recorded') && (
        <li>
          <CurveSign look="dashed" /> <b>recorded</b>: {beside.recorded?.title}
        </li>
      )}
      {has('measured') && (
        <li>
          <CurveSign look="rings" /> <b>measured</b> on this target
          {measuredOnSimulated && ', a simulated cluster'}
        </li>
      )}
    </ul>
  );
}

const getStyles = (theme: GrafanaTheme2) => ({
  earlier: css({ opacity: 0.45 }),
  legend: css({
    display: 'flex',
    flexWrap: 'wrap',
    gap: theme.spacing(0, 2),
    margin: theme.spacing(0, 0, 1),
    padding: 0,
    listStyle: 'none',
  }),
  curves: css({
    display: 'grid',
    gridTemplateColumns: 'repeat(auto-fill, minmax(min(380px, 100%), 1fr))',
    gap: theme.spacing(2),
  }),
});
