import React, { memo, useMemo } from 'react';
import { css } from '@emotion/css';

import type { GrafanaTheme2 } from '@grafana/data';
import { useStyles2 } from '@grafana/ui';

import type { Settings } from '../../client';
import { number } from '../../lib/format';
import { modeName } from '../../lib/names';
import { Curve, CurveSign, type Scale } from '../Curve';
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

/** The least room between two levels' words, as a share of the axis. */
const ROOM = 0.12;

/** An axis of the levels there are, from the lowest to the highest; where they stand close, not each has its word. */
export function levels(all: number[]): Scale {
  const [low, high] = [Math.min(...all), Math.max(...all)];
  const [min, max] = low < high ? [low, high] : [low - 1, high + 1];
  const ticks = Array.from(new Set(all)).reduce<number[]>((shown, level) => {
    const before = shown.at(-1);
    return before === undefined || level - before >= ROOM * (max - min) ? [...shown, level] : shown;
  }, []);
  return { min, max, ticks: ticks.map((at) => ({ at, text: number(at) })) };
}

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
