import { memo } from 'react';
import { cx } from '@emotion/css';
import { Link } from 'react-router-dom';

import type { Conversation } from '../../client';
import { errorName } from '../../lib/errorNames';
import { DASH, percent, span } from '../../lib/format';
import { stylesOf } from '../../lib/styles';
import { hitRate, ttftsText, workersIn } from './figures';
import { StatusBadge } from './StatusBadge';
import { durationOf, timeOfDay, useClock } from './useClock';

/** The height of a row, in pixels. */
export const ROW = 40;

/** Its height as a card, in pixels. */
export const CARD = 148;

interface RowProps {
  conversation: Conversation;
  /** Its index in the table, from 1 on, including the row of heads. */
  index: number;
  to: string;
  /** Whether Tab reaches it. One row of the table is enough, because the arrow keys reach the others. */
  reachable: boolean;
  workerName(id: string): string;
  /** Whether it is a card, for lack of room for columns. */
  card: boolean;
}

/** One conversation of the list. All of it is the link. */
export const Row = memo(function Row({ conversation, index, to, reachable, workerName, card }: RowProps) {
  const styles = useStyles();
  const { id, status, topic, error_class, turns_done, turns_planned, started } = conversation;
  const workers = workersIn(conversation).map(workerName).join(', ') || DASH;
  const ttfts = ttftsText(conversation);
  return (
    <tr className={cx(styles.row, card ? styles.card : styles.line)} aria-rowindex={index}>
      <td>
        <StatusBadge status={status} />
      </td>
      <td title={error_class ? `${topic}: ${errorName(error_class)}` : topic}>
        <Link to={to} className={styles.link} tabIndex={reachable ? 0 : -1} data-conversation={id}>
          {topic}
        </Link>
        {error_class && <span className={styles.failure}>{errorName(error_class)}</span>}
      </td>
      <td data-name="Turns">
        {turns_done} of {turns_planned}
      </td>
      <td data-name="TTFT by turn, ms" title={ttfts}>
        {ttfts}
      </td>
      <td data-name="Hit rate">{percent(hitRate(conversation))}</td>
      <td data-name="Worker" title={workers}>
        {workers}
      </td>
      <td data-name="Duration">
        {conversation.ended === undefined ? <Running conversation={conversation} /> : durationText(conversation)}
      </td>
      <td data-name="Started">{timeOfDay(started)}</td>
    </tr>
  );
});

/** The duration of a conversation in progress: of its row, the clock changes this alone. */
function Running({ conversation }: { conversation: Conversation }) {
  return <>{durationText(conversation, useClock())}</>;
}

function durationText(conversation: Conversation, now?: number): string {
  const duration = durationOf(conversation, now);
  return duration === undefined ? DASH : span(duration);
}

const useStyles = stylesOf((theme) => ({
  row: {
    position: 'relative', // the link covers it
    borderBottom: `1px solid ${theme.colors.border.weak}`,
    '& td': { overflow: 'hidden', textOverflow: 'ellipsis', whiteSpace: 'nowrap' },
    '&:hover': { background: theme.colors.action.hover },
    '&:focus-within': { outline: `2px solid ${theme.colors.primary.border}`, outlineOffset: -2 },
  },
  line: { height: ROW, '& td': { padding: theme.spacing(0, 1) } },
  // Topic and status, then the times of the turns, then the rest. The worker's name has a line of its own.
  card: {
    display: 'grid',
    gridTemplateColumns: 'repeat(3, minmax(0, 1fr))',
    alignContent: 'center',
    gap: theme.spacing(0.25, 1),
    height: CARD,
    padding: theme.spacing(0, 1),
    '& td': { padding: 0 },
    '& td:nth-child(1)': { gridArea: '1 / 3', textAlign: 'right' },
    '& td:nth-child(2)': { gridArea: '1 / 1 / 2 / 3', fontWeight: theme.typography.fontWeightMedium },
    '& td:nth-child(4)': { gridArea: '2 / 1 / 3 / 4' },
    '& td:nth-child(5)': { gridArea: '3 / 2 / 4 / 4' },
    '& td:nth-child(6)': { gridArea: '5 / 1 / 6 / 4' },
    '& td:nth-child(n + 4):nth-child(-n + 6)::before': {
      content: 'attr(data-name) " "',
      color: theme.colors.text.secondary,
    },
  },
  failure: { marginLeft: theme.spacing(1.5), color: theme.colors.error.text },
  link: {
    color: theme.colors.text.link,
    '&::after': { content: '""', position: 'absolute', inset: 0 },
    '&:focus, &:focus-visible': { outline: 'none', boxShadow: 'none' },
  },
}));
