import type { LaneSnapshot } from '../../client';
import { DASH, number } from '../../lib/format';
import { stylesOf } from '../../lib/styles';
import { NOT_READ, whyUnread } from '../../lib/unread';
import { Facts as FactList } from '../Facts';
import { facts } from './model';

interface FactsProps {
  lane: LaneSnapshot;
  /** Whether the facts are live. Otherwise, changing ones are not shown. */
  isLive: boolean;
}

/** The known facts of the cluster as a whole, with their source. */
export function Facts({ lane, isLive }: FactsProps) {
  const styles = useStyles();
  const { cluster } = lane;
  const direct = whyUnread(cluster, 'workers') ? 'the target itself' : 'the workers themselves';
  const source = cluster.source === 'direct' ? direct : 'Prometheus';
  // A figure that an engine reports only after its first work is not marked as missing before.
  const worked = lane.state.running && lane.totals.ok > 0;
  const why = whyUnread(cluster, 'workers');
  const absent = (term: string) =>
    isLive && cluster.available && (worked || STATIC.has(term)) ? (
      <small title={why}>{why ? NOT_READ : 'not reported by this engine'}</small>
    ) : (
      DASH
    );
  return (
    <>
      <FactList
        of={facts(lane).map(([term, value]) => [
          term,
          (isLive || STATIC.has(term)) && value !== undefined ? value : absent(term),
        ])}
      />
      {isLive && cluster.available && (
        <div className={styles.note}>
          From {source}, {number(cluster.age_seconds)} s ago
        </div>
      )}
    </>
  );
}

/** The facts that stay true while the load generator is unreachable. */
const STATIC = new Set(['GPU', 'Model', 'Engine']);

const useStyles = stylesOf((theme) => ({
  note: { ...theme.typography.bodySmall, color: theme.colors.text.secondary },
}));
