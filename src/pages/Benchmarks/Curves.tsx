import React, { memo, useMemo } from 'react';
import { css } from '@emotion/css';

import type { GrafanaTheme2 } from '@grafana/data';
import { useStyles2 } from '@grafana/ui';

import type { BaselineRow, Settings } from '../../client';
import { Curve, CurveSign, levels } from '../../components/Curve';
import { drawingsOf, linesOf } from './curves';

interface CurvesProps {
  rows: BaselineRow[];
  slo: Settings['slo'] | undefined;
  /** The levels that were asked for, so that the axis stays while the curves grow. */
  asked: number[];
}

/** Each metric against concurrency, by mode, with its intervals as bands; the table has the figures. */
export const Curves = memo(function Curves({ rows, slo, asked }: CurvesProps) {
  const styles = useStyles2(getStyles);
  const drawings = useMemo(() => drawingsOf(rows, slo), [rows, slo]);
  const x = levels([...new Set([...asked, ...rows.map(({ concurrency }) => concurrency)])].sort((a, b) => a - b));
  return (
    <div>
      <ul className={styles.legend} aria-label="Lines">
        {linesOf(rows).map(({ key, name, tone, look }) => (
          <li key={key}>
            <CurveSign tone={tone} look={look} /> {name}
          </li>
        ))}
        <li>bands: 95 % intervals</li>
      </ul>
      <div className={styles.curves}>
        {drawings.map(({ metric: { key, name, unit }, lines, bands, y, limit, isCut }) => (
          <figure key={key} className={styles.figure}>
            <figcaption>
              {name}, {unit}
            </figcaption>
            <div className={styles.plot}>
              <Curve
                label={`${name} by concurrency; the table has the figures`}
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
    '& li:last-child': { color: theme.colors.text.secondary },
  }),
  curves: css({
    display: 'grid',
    gridTemplateColumns: 'repeat(auto-fill, minmax(min(340px, 100%), 1fr))',
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
