import { memo } from 'react';
import { cx } from '@emotion/css';

import { colorManipulator } from '@grafana/data';

import type { GPU, HostGPUs, Worker } from '../../client';
import { milliseconds, number, percent } from '../../lib/format';
import { COLUMN, stylesOf, workerColors } from '../../lib/styles';
import { missingText } from '../../lib/unread';
import { shortName } from '../../lib/workers';
import { loadOf, memoryShare } from './model';

interface WorkerCardProps {
  worker: Worker;
  /** Why there are no figures; undefined where there are. */
  absent?: string;
  /** Why the worker's metrics are not read; undefined where they are. */
  unread?: string;
  /** Why the metrics of its GPUs' exporter are not read; undefined where they are. */
  unreadGPUs?: string;
}

/** One worker: a box for each of its GPUs, and its figures. */
export const WorkerCard = memo(function WorkerCard({ worker, absent, unread, unreadGPUs }: WorkerCardProps) {
  const styles = useStyles();
  return (
    <li className={cx(styles.card, absent && styles.absent)}>
      <h3 title={worker.name}>{shortName(worker.name)}</h3>
      {absent && <div className={styles.reason}>{absent}</div>}
      <GPUBoxes gpus={worker.gpus} absent={absent !== undefined} unread={unreadGPUs} />
      <dl className={styles.figures}>
        {figures(worker).map(([term, field, value]) => (
          <div key={term}>
            <dt>{term}</dt>
            <dd>{isSilent(worker, field) && !absent ? <small title={unread}>{missingText(unread)}</small> : value}</dd>
          </div>
        ))}
      </dl>
    </li>
  );
});

type Field = 'inflight' | 'waiting' | 'queue_seconds' | 'cache_use' | 'hit_ratio' | 'routed';

/** Whether a worker's figure is not reported, as opposed to one that has no value so far. */
function isSilent(worker: Worker, field: Field): boolean {
  return worker[field] === undefined && (worker.not_reported ?? []).includes(field);
}

function figures(worker: Worker): Array<[term: string, field: Field, value: string]> {
  return [
    ['In flight', 'inflight', number(worker.inflight)],
    ['Waiting', 'waiting', number(worker.waiting)],
    ['Time in queue', 'queue_seconds', milliseconds(worker.queue_seconds)],
    ['KV cache in use', 'cache_use', percent(worker.cache_use)],
    ['Engine KV hits', 'hit_ratio', percent(worker.hit_ratio)],
    ['Requests routed', 'routed', number(worker.routed)],
  ];
}

/** A card for the GPUs of a host whose worker is not known. */
export const HostCard = memo(function HostCard({ host, gpus }: HostGPUs) {
  const styles = useStyles();
  return (
    <li className={styles.card}>
      <h3>{host}</h3>
      <div className={styles.small}>GPUs of unknown workers</div>
      <GPUBoxes gpus={gpus} absent={false} />
    </li>
  );
});

function GPUBoxes({ gpus, absent, unread }: { gpus: GPU[]; absent: boolean; unread?: string }) {
  const styles = useStyles();
  return (
    <div className={styles.gpus}>
      {gpus.map((gpu, i) => (
        <GPUBox key={`${gpu.index} ${i}`} gpu={gpu} absent={absent} />
      ))}
      {gpus.length === 0 && !absent && (
        <div className={styles.small}>
          GPUs {missingText(unread)}: {unread ?? 'no DCGM exporter reports them'}
        </div>
      )}
    </div>
  );
}

function GPUBox({ gpu, absent }: { gpu: GPU; absent: boolean }) {
  const styles = useStyles();
  const load = loadOf(gpu);
  return (
    <div className={cx(styles.gpu, load && styles[load])}>
      <div className={styles.index}>
        GPU {gpu.index}
        {gpu.instance && ` ${gpu.instance}`}
      </div>
      <Gauge value={gpu.utilisation} words={load ? `${load} utilization` : 'utilization'} absent={absent} />
      <Gauge value={memoryShare(gpu)} words="memory" absent={absent} />
    </div>
  );
}

function Gauge({ value, words, absent }: { value?: number; words: string; absent: boolean }) {
  const styles = useStyles();
  return (
    <div>
      <div className={styles.value}>{percent(value)}</div>
      <div className={styles.small}>{value === undefined && !absent ? `${words} not reported` : words}</div>
    </div>
  );
}

const useStyles = stylesOf((theme) => {
  const { warning, text, border, background } = theme.colors;
  const [worker] = workerColors(theme);
  return {
    card: {
      ...COLUMN,
      gap: theme.spacing(1),
      minWidth: 0,
      padding: theme.spacing(1.5),
      borderRadius: theme.shape.radius.default,
      background: background.secondary,
      fontVariantNumeric: 'tabular-nums',
      '& h3': { ...theme.typography.h5, margin: 0, overflowWrap: 'anywhere' },
    },
    absent: { border: `1px dashed ${warning.border}` },
    reason: { color: warning.text },
    gpus: {
      display: 'grid',
      gridTemplateColumns: 'repeat(auto-fit, minmax(min(16em, 100%), 1fr))',
      gap: theme.spacing(1),
    },
    gpu: {
      display: 'grid',
      gridTemplateColumns: '1fr 1fr',
      columnGap: theme.spacing(1),
      padding: theme.spacing(0.5, 1),
      borderLeft: `4px solid ${border.strong}`,
      borderRadius: theme.shape.radius.default,
      background: background.primary,
    },
    index: { gridColumn: '1 / -1', color: text.secondary },
    value: { fontSize: theme.typography.h3.fontSize, lineHeight: 1.2 },
    // A busy GPU is no alarm: it has more of one color, not another one.
    low: { borderLeftColor: colorManipulator.alpha(worker, 0.3) },
    medium: { borderLeftColor: colorManipulator.alpha(worker, 0.65) },
    high: { borderLeftColor: worker },
    small: { ...theme.typography.bodySmall, color: text.secondary },
    figures: {
      display: 'grid',
      gridTemplateColumns: 'repeat(auto-fill, minmax(min(13em, 100%), 1fr))',
      gap: theme.spacing(0, 2),
      margin: 0,
      '& > div': { display: 'flex', justifyContent: 'space-between', gap: theme.spacing(1) },
      '& dt': { color: text.secondary, fontWeight: theme.typography.fontWeightRegular },
      '& dd': { margin: 0, fontWeight: theme.typography.fontWeightMedium, whiteSpace: 'nowrap' },
      '& small': { color: text.secondary },
    },
  };
});
