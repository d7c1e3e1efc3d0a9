import React, { memo } from 'react';
import { css, cx } from '@emotion/css';

import type { GrafanaTheme2 } from '@grafana/data';
import { useStyles2 } from '@grafana/ui';

import type { GPU, Worker } from '../../client';
import { DASH, milliseconds, number, percent } from '../../lib/format';
import { loadOf, memoryShare } from './model';

interface WorkerCardProps {
  worker: Worker;
  /** Why there are no figures; undefined where there are. */
  absent?: string;
}

/** One worker: a box for each of its GPUs, and what it does. */
export const WorkerCard = memo(function WorkerCard({ worker, absent }: WorkerCardProps) {
  const styles = useStyles2(getStyles);
  return (
    <li className={cx(styles.card, absent && styles.absent)}>
      <h3>{worker.name}</h3>
      {absent && <div className={styles.reason}>{absent}</div>}
      <div className={styles.gpus}>
        {worker.gpus.map((gpu) => (
          <GPUBox key={gpu.index} gpu={gpu} absent={absent !== undefined} />
        ))}
        {worker.gpus.length === 0 && !absent && <div className={styles.small}>GPUs not reported by this engine</div>}
      </div>
      <dl className={styles.figures}>
        {figures(worker).map(([term, value]) => (
          <div key={term}>
            <dt>{term}</dt>
            <dd>{value ?? (absent ? DASH : <small>not reported</small>)}</dd>
          </div>
        ))}
      </dl>
    </li>
  );
});

function figures({ inflight, waiting, cache_use, routed, queue_seconds }: Worker): Array<[string, string | undefined]> {
  const known = (value: number | undefined, write: (v: number) => string) =>
    value === undefined ? undefined : write(value);
  return [
    ['In flight', known(inflight, (v) => number(v))],
    ['Waiting', known(waiting, (v) => number(v))],
    ['Time in queue', known(queue_seconds, (v) => milliseconds(v, 0))],
    ['KV cache in use', known(cache_use, (v) => percent(v, 0))],
    ['Requests routed', known(routed, (v) => number(v))],
  ];
}

function GPUBox({ gpu, absent }: { gpu: GPU; absent: boolean }) {
  const styles = useStyles2(getStyles);
  const load = loadOf(gpu);
  return (
    <div className={cx(styles.gpu, load && styles[load])}>
      <div className={styles.index}>GPU {gpu.index}</div>
      <Gauge value={gpu.utilisation} words={load ? `${load} utilisation` : 'utilisation'} absent={absent} coloured />
      <Gauge value={memoryShare(gpu)} words="memory" absent={absent} />
    </div>
  );
}

interface GaugeProps {
  value?: number;
  words: string;
  absent: boolean;
  coloured?: boolean;
}

function Gauge({ value, words, absent, coloured }: GaugeProps) {
  const styles = useStyles2(getStyles);
  return (
    <div className={cx(coloured && styles.coloured)}>
      <div className={styles.value}>{percent(value, 0)}</div>
      <div className={styles.small}>{value === undefined && !absent ? `${words} not reported` : words}</div>
    </div>
  );
}

const getStyles = (theme: GrafanaTheme2) => {
  const { success, warning, error, text, border, background } = theme.colors;
  const load = (color: string, word: string) => css({ borderLeftColor: color, '--load': word });
  return {
    card: css({
      display: 'flex',
      flexDirection: 'column',
      gap: theme.spacing(1),
      minWidth: 0,
      padding: theme.spacing(1.5),
      borderRadius: theme.shape.radius.default,
      background: background.secondary,
      fontVariantNumeric: 'tabular-nums',
      '& h3': { ...theme.typography.h5, margin: 0, overflowWrap: 'anywhere' },
    }),
    absent: css({ border: `1px dashed ${warning.border}` }),
    reason: css({ color: warning.text }),
    gpus: css({
      display: 'grid',
      gridTemplateColumns: 'repeat(auto-fit, minmax(min(220px, 100%), 1fr))',
      gap: theme.spacing(1),
    }),
    gpu: css({
      display: 'grid',
      gridTemplateColumns: '1fr 1fr',
      columnGap: theme.spacing(1),
      padding: theme.spacing(0.5, 1),
      borderLeft: `4px solid ${border.strong}`,
      borderRadius: theme.shape.radius.default,
      background: background.primary,
    }),
    index: css({ gridColumn: '1 / -1', color: text.secondary }),
    coloured: css({ color: `var(--load, ${text.secondary})`, '& *': { color: 'inherit' } }),
    value: css({ fontSize: theme.typography.h3.fontSize, lineHeight: 1.2 }),
    low: load(success.main, success.text),
    medium: load(warning.main, warning.text),
    high: load(error.main, error.text),
    small: css({ ...theme.typography.bodySmall, color: text.secondary }),
    figures: css({
      display: 'grid',
      gridTemplateColumns: 'repeat(auto-fill, minmax(150px, 1fr))',
      gap: theme.spacing(0, 2),
      margin: 0,
      '& > div': { display: 'flex', justifyContent: 'space-between', gap: theme.spacing(1) },
      '& dt': { color: text.secondary, fontWeight: theme.typography.fontWeightRegular },
      '& dd': { margin: 0, fontWeight: theme.typography.fontWeightMedium },
      '& small': { color: text.secondary },
    }),
  };
};
