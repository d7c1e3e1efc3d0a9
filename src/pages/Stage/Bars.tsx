import { cx } from '@emotion/css';

import type { Cluster, LaneSnapshot, Worker } from '../../client';
import { unavailable } from '../../components/Kpis';
import { DASH, milliseconds, number } from '../../lib/format';
import { PLAIN_LIST, stylesOf, workerColors } from '../../lib/styles';
import { missingText, whyUnread } from '../../lib/unread';
import { shorten, workerCount } from '../../lib/workers';

interface BarsProps {
  /** Undefined until it is known. */
  cluster?: Cluster;
  /** Whether the figures are live; earlier ones are dimmed. */
  isLive: boolean;
  /** The accessible name, where there are several. */
  label?: string;
}

/** The longest name beside a bar, in letters. */
const LETTERS = 20;

/** The number of bars that fit. Of more workers, the busiest are shown. */
const MAX_BARS = 8;

/** The requests in flight at each worker, as bars. */
export function Bars({ cluster, isLive, label = 'Workers' }: BarsProps) {
  const styles = useStyles();
  const workers = cluster?.workers ?? [];
  const shown = workers.length <= MAX_BARS ? workers : [...workers].sort(busier).slice(0, MAX_BARS);
  const more = cluster ? workerCount(cluster) - shown.length : 0;
  const why = cluster
    ? (unavailable(cluster) ?? (shown.length === 0 ? 'No worker has reported yet' : undefined))
    : DASH;
  const missing = missingText(cluster && whyUnread(cluster, 'workers'));
  return (
    <section className={cx(styles.part, !isLive && styles.past)} aria-label={label}>
      <h2>
        Requests in flight per worker
        {more > 0 && !why && (
          <small>
            , the busiest {shown.length}; {number(more)} more not shown
          </small>
        )}
      </h2>
      <BarList
        least="17em"
        workers
        why={why}
        bars={shown.map(({ name, inflight }) => ({
          name,
          value: inflight ?? 0,
          text: inflight === undefined ? missing : number(inflight),
        }))}
      />
    </section>
  );
}

function busier(a: Worker, b: Worker): number {
  return (b.inflight ?? -1) - (a.inflight ?? -1);
}

interface TurnBarsProps {
  lane?: LaneSnapshot;
  /** Whether the figures are live; earlier ones are dimmed. */
  isLive: boolean;
}

/** TTFT p50 of each turn number as bars. */
export function TurnBars({ lane, isLive }: TurnBarsProps) {
  const styles = useStyles();
  const rows = lane?.state.running ? lane.ttft_by_turn : [];
  return (
    <section className={cx(styles.part, !isLive && styles.past)} aria-label="TTFT by turn">
      <h2>TTFT by turn, p50, last 60 s</h2>
      <BarList
        least="9em"
        why={rows.length === 0 ? DASH : undefined}
        bars={rows.map(({ turn, p50 = 0 }) => ({ name: turn, value: p50, text: milliseconds(p50 || undefined) }))}
      />
    </section>
  );
}

interface BarListProps {
  bars: Array<{ name: string; value: number; text: string }>;
  /** Why there are none. */
  why?: string;
  /** The least width of a bar with its labels. */
  least: string;
  /** Whether each bar is a worker. */
  workers?: boolean;
}

/** Bars beside their names and figures, as many in a row as fit. The longest has the whole length. */
function BarList({ bars, why, least, workers }: BarListProps) {
  const styles = useStyles();
  if (why) {
    return <div>{why}</div>;
  }
  const most = Math.max(...bars.map(({ value }) => value)) || 1;
  return (
    <ul className={styles.bars} style={{ gridTemplateColumns: `repeat(auto-fit, minmax(min(${least}, 100%), 1fr))` }}>
      {bars.map(({ name, value, text }) => (
        <li key={name}>
          <span className={styles.name} title={name}>
            {shorten(name, LETTERS)}
          </span>
          <span className={styles.track} aria-hidden="true">
            <span className={workers ? styles.worker : styles.bar} style={{ width: `${(100 * value) / most}%` }} />
          </span>
          <b>{text}</b>
        </li>
      ))}
    </ul>
  );
}

const bar = { display: 'block', height: '100%', borderRadius: 'inherit' };

const useStyles = stylesOf((theme) => ({
  part: {
    flex: '1 1 40em',
    minWidth: 0,
    padding: '0.6em 1.4em',
    borderRadius: '0.5em',
    background: theme.colors.background.primary,
    fontVariantNumeric: 'tabular-nums',
    '& h2': { fontSize: '1.5em', lineHeight: 1.3, margin: 0, color: theme.colors.text.secondary },
    '& h2 small': { fontSize: '1em' },
    '& > div': { fontSize: '1.7em' },
  },
  past: { color: theme.colors.text.secondary, '& li > span > span': { background: theme.colors.border.strong } },
  bars: {
    display: 'grid',
    gap: '0 1.6em',
    ...PLAIN_LIST,
    fontSize: '1.6em',
    lineHeight: 1.35,
    '& li': { display: 'grid', gridTemplateColumns: 'fit-content(65%) 1fr auto', alignItems: 'center', gap: '0.6em' },
    '& b': { fontWeight: theme.typography.fontWeightMedium, minWidth: '2ch', textAlign: 'right' },
  },
  name: { overflow: 'hidden', textOverflow: 'ellipsis', whiteSpace: 'nowrap' },
  track: { height: '0.7em', borderRadius: '0.2em', background: theme.colors.background.secondary },
  bar: { ...bar, background: theme.colors.primary.main },
  worker: { ...bar, background: workerColors(theme)[0] },
}));
