import { cx } from '@emotion/css';

import type { Cluster, LaneSnapshot } from '../../client';
import { unavailable } from '../../components/Kpis';
import { DASH, milliseconds, number } from '../../lib/format';
import { PLAIN_LIST, stylesOf, workerColors } from '../../lib/styles';
import { missingText, whyUnread } from '../../lib/unread';
import { shorten } from '../../lib/workers';
import { toBars } from './model';

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

/** The requests in flight at each worker, as bars. */
export function Bars({ cluster, isLive, label = 'Workers' }: BarsProps) {
  const styles = useStyles();
  const { bars, more } = cluster ? toBars(cluster) : { bars: [], more: 0 };
  const why = cluster ? (unavailable(cluster) ?? (bars.length === 0 ? 'No worker has reported yet' : undefined)) : DASH;
  return (
    <section className={cx(styles.part, !isLive && styles.past)} aria-label={label}>
      <h2>
        Requests in flight per worker
        {more > 0 && !why && (
          <small>
            , the busiest {bars.length}; {number(more)} more not shown
          </small>
        )}
      </h2>
      {why ? (
        <div>{why}</div>
      ) : (
        <BarList
          least="17em"
          workers
          bars={bars.map(({ name, inflight, share }) => ({
            name,
            share,
            text: inflight === undefined ? missingText(cluster && whyUnread(cluster, 'workers')) : number(inflight),
          }))}
        />
      )}
    </section>
  );
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
  const most = Math.max(...rows.map(({ p50 }) => p50 ?? 0));
  return (
    <section className={cx(styles.part, !isLive && styles.past)} aria-label="TTFT by turn">
      <h2>TTFT by turn, p50, last 60 s</h2>
      {rows.length === 0 ? (
        <div>{DASH}</div>
      ) : (
        <BarList
          least="9em"
          bars={rows.map(({ turn, p50 = 0 }) => ({
            name: turn,
            share: most > 0 ? p50 / most : 0,
            text: milliseconds(p50 || undefined),
          }))}
        />
      )}
    </section>
  );
}

interface BarListProps {
  bars: Array<{ name: string; share: number; text: string }>;
  /** The least width of a bar with its labels. */
  least: string;
  /** Whether each bar is a worker. */
  workers?: boolean;
}

/** Bars beside their names and figures, as many in a row as fit. */
function BarList({ bars, least, workers }: BarListProps) {
  const styles = useStyles();
  return (
    <ul className={styles.bars} style={{ gridTemplateColumns: `repeat(auto-fit, minmax(min(${least}, 100%), 1fr))` }}>
      {bars.map(({ name, share, text }) => (
        <li key={name}>
          <span className={styles.name} title={name}>
            {shorten(name, LETTERS)}
          </span>
          <span className={styles.track} aria-hidden="true">
            <span className={workers ? styles.worker : styles.bar} style={{ width: `${100 * share}%` }} />
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
