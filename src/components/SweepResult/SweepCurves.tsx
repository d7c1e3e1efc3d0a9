import React, { memo, useMemo } from 'react';
import { css } from '@emotion/css';

import type { GrafanaTheme2 } from '@grafana/data';
import { useStyles2 } from '@grafana/ui';

import type { Sweep } from '../../client';
import { Curve, CurveSign, levels } from '../Curve';
import { curvesOf, linesOf } from './model';
import type { Recorded } from './useRecorded';

interface SweepCurvesProps {
  sweep: Sweep;
  recorded?: Recorded;
}

/** Each metric against concurrency, by mode, with the 95 % intervals as bands. */
export const SweepCurves = memo(function SweepCurves({ sweep: { rows, request }, recorded }: SweepCurvesProps) {
  const styles = useStyles2(getStyles);
  const curves = useMemo(() => curvesOf(rows, recorded?.rows ?? [], request.slo), [rows, recorded, request.slo]);
  const asked = request.levels ?? [];
  const x = levels([...new Set([...asked, ...rows.map(({ concurrency }) => concurrency)])].sort((a, b) => a - b));
  return (
    <div>
      <ul className={styles.legend} aria-label="Lines">
        {linesOf(rows).map(({ key, name, tone, look }) => (
          <li key={key}>
            <CurveSign tone={tone} look={look} /> {name}
          </li>
        ))}
        <li>
          <CurveSign /> <b>measured</b>, with its 95 % interval
        </li>
        {recorded && (
          <li>
            <CurveSign look="dashed" /> <b>recorded</b>: {recorded.title}
          </li>
        )}
      </ul>
      <div className={styles.curves}>
        {curves.map(({ metric: { key, name, unit }, lines, bands, y, limit, isCut }) => (
          <figure key={key} className={styles.figure}>
            <figcaption>
              {name}, {unit}
            </figcaption>
            <div className={styles.plot}>
              <Curve
                label={`${name} by concurrency and mode; the table has the figures`}
                x={x}
                y={y}
                lines={lines}
                bands={bands}
                limit={limit}
              />
            </div>
            {isCut && (
              <small className={styles.cut}>
                Values above {y.ticks.at(-1)?.text} are not drawn; the table has them.
              </small>
            )}
          </figure>
        ))}
      </div>
    </div>
  );
});

const getStyles = (theme: GrafanaTheme2) => ({
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
    gridTemplateColumns: 'repeat(auto-fit, minmax(min(260px, 100%), 1fr))',
    gap: theme.spacing(2),
  }),
  figure: css({ margin: 0, minWidth: 0, '& figcaption': { fontWeight: theme.typography.fontWeightMedium } }),
  plot: css({
    height: 190,
    padding: theme.spacing(2.5, 6.5, 3, 6),
    fontSize: theme.typography.bodySmall.fontSize,
  }),
  cut: css({ display: 'block', color: theme.colors.text.secondary, fontSize: theme.typography.bodySmall.fontSize }),
});
