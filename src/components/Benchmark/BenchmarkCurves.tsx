import React, { memo, useMemo } from 'react';
import { css } from '@emotion/css';

import type { GrafanaTheme2 } from '@grafana/data';
import { useStyles2 } from '@grafana/ui';

import type { Settings } from '../../client';
import { modeName } from '../../lib/names';
import { Curve, CurveSign, levels } from '../Curve';
import { toCurves, type BenchmarkModel } from './model';

interface BenchmarkCurvesProps {
  model: BenchmarkModel;
  settings: Settings;
  /** The concurrency of the running workload; undefined while none runs. */
  concurrency?: number;
}

/** Each metric against concurrency: the figures are those of the tables. */
export const BenchmarkCurves = memo(function BenchmarkCurves({ model, settings, concurrency }: BenchmarkCurvesProps) {
  const styles = useStyles2(getStyles);
  const curves = useMemo(() => toCurves(model, settings), [model, settings]);
  const x = levels(model.rows.map((row) => row.concurrency));
  const isOn = concurrency !== undefined && concurrency >= x.min && concurrency <= x.max;
  return (
    <div>
      <ul className={styles.legend} aria-label="Lines">
        {(['round_robin', 'kv'] as const).map((mode) => (
          <li key={mode}>
            <CurveSign tone={mode} /> {modeName(mode)}
          </li>
        ))}
      </ul>
      <div className={styles.curves}>
        {curves.map(({ key, name, lines, y, limit }) => (
          <figure key={key} className={styles.figure}>
            <figcaption>{name}</figcaption>
            <div className={styles.plot}>
              <Curve
                label={`${name} by concurrency under round-robin and KV-aware routing; the tables have the figures`}
                x={x}
                y={y}
                lines={lines}
                limit={limit}
                marks={isOn ? [{ at: concurrency, text: 'live now' }] : undefined}
              />
            </div>
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
    gridTemplateColumns: 'repeat(auto-fill, minmax(min(300px, 100%), 1fr))',
    gap: theme.spacing(2),
  }),
  figure: css({ margin: 0, minWidth: 0, '& figcaption': { fontWeight: theme.typography.fontWeightMedium } }),
  plot: css({
    height: 190,
    padding: theme.spacing(2.5, 6.5, 3, 6),
    fontSize: theme.typography.bodySmall.fontSize,
  }),
});
