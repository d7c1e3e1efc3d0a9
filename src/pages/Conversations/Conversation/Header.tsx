import { Link } from 'react-router-dom';

import type { Conversation } from '../../../client';
import { Facts, type Fact } from '../../../components/Facts';
import { DASH, span } from '../../../lib/format';
import { LINE, stylesOf, WRAP } from '../../../lib/styles';
import { usePagePath } from '../../navigation';
import { StatusBadge } from '../StatusBadge';
import { durationOf, timeOfDay } from '../useClock';
import { workersOf } from './model';
import type { Neighbors } from './useNeighbors';

interface HeaderProps {
  conversation: Conversation;
  workerName(id: string): string;
  /** The load generator's clock. */
  now?: number;
}

/** The figures of a conversation as a whole. */
export function Header({ conversation, workerName, now }: HeaderProps) {
  const styles = useStyles();
  const { lane, topic, status, turns_done, turns_planned, started, number } = conversation;
  const duration = durationOf(conversation, now);
  const workers = workersOf(conversation).map(workerName);
  const facts: Fact[] = [
    ['Turns', `${turns_done} of ${turns_planned}`],
    ['Duration', duration === undefined ? DASH : span(duration)],
    [workers.length > 1 ? 'Workers' : 'Worker', workers.join(', ') || DASH],
    ['Started', timeOfDay(started)],
    ['Lane', lane],
    ['Number', String(number)],
  ];
  return (
    <div className={styles.header}>
      <div className={styles.title}>
        <h2>{topic}</h2>
        <span role="status">
          <StatusBadge status={status} />
        </span>
      </div>
      <Facts of={facts} />
    </div>
  );
}

interface NeighborLinksProps {
  neighbors: Neighbors;
  /** The query of the list that the conversation was opened from. */
  search: string;
}

/** Links back to the list and to the neighbors of this conversation. */
export function NeighborLinks({ neighbors: { newer, older }, search }: NeighborLinksProps) {
  const styles = useStyles();
  const path = usePagePath();
  const way = (words: string, to?: Conversation) =>
    to ? (
      <Link to={`${path(`conversations/${encodeURIComponent(to.id)}`)}${search}`} title={to.topic}>
        {words}
      </Link>
    ) : (
      <span className={styles.none}>{words}</span>
    );
  return (
    <nav className={styles.ways} aria-label="Conversations">
      <Link to={`${path('conversations')}${search}`}>All conversations</Link>
      <span className={styles.beside}>
        {way('← Newer', newer)}
        {way('Older →', older)}
      </span>
    </nav>
  );
}

const useStyles = stylesOf((theme) => ({
  header: { ...WRAP, alignItems: 'baseline', gap: theme.spacing(0.5, 4) },
  title: {
    ...LINE,
    gap: theme.spacing(1),
    '& h2': { ...theme.typography.h3, margin: 0 },
  },
  ways: {
    ...WRAP,
    justifyContent: 'space-between',
    gap: theme.spacing(1, 3),
    '& a': { color: theme.colors.text.link, textDecoration: 'underline' },
  },
  beside: { display: 'flex', gap: theme.spacing(2) },
  none: { color: theme.colors.text.secondary },
}));
