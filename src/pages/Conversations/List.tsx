import { useEffect, useRef } from 'react';
import { cx } from '@emotion/css';
import { useVirtualizer } from '@tanstack/react-virtual';

import { Button } from '@grafana/ui';

import type { Conversation } from '../../client';
import { number } from '../../lib/format';
import { stylesOf } from '../../lib/styles';
import { useNarrow } from '../../lib/useNarrow';
import { useStable } from '../../lib/useStable';
import { COLUMNS, nextOrder, type Order } from './order';
import { CARD, Row, ROW } from './Row';
import { useArrows } from './useArrows';
import { MAX_WAITING, type Conversations } from './useConversations';
import { useRoom } from './useRoom';
import { useWorkerNames } from './useWorkerNames';

/** Below this width, in pixels, each row is a card. */
const NARROW = 1000;

/** The number of rows rendered beyond each edge, so that scrolling shows no gap. */
const SPARE = 8;

interface ListProps {
  conversations: Conversations;
  /** The accessible name of the table. */
  lane: string;
  order: Order;
  onOrder(order: Order): void;
  linkTo(conversation: Conversation): string;
  /** Called with the conversation at the top of the visible part. */
  onSee(id: string | undefined): void;
}

/** A table that renders only its visible rows. While it is scrolled down or has the keyboard focus, new rows wait. */
export function List({ conversations, lane, order, onOrder, linkTo, onSee }: ListProps) {
  const styles = useStyles();
  const { rows, waiting, more, problem, hold, release } = conversations;
  const box = useRef<HTMLDivElement>(null);
  const height = useRoom(box);
  const [place, card] = useNarrow(NARROW);
  const workerName = useWorkerNames(lane);
  const [size, heads] = card ? [CARD, 0] : [ROW, ROW];
  // eslint-disable-next-line react-hooks/incompatible-library -- React's compiler is not in use
  const list = useVirtualizer({
    count: rows.length,
    getScrollElement: () => box.current,
    estimateSize: () => size,
    overscan: SPARE,
    paddingStart: heads, // they cover the rows below them
    scrollPaddingStart: heads,
  });
  useEffect(() => list.measure(), [list, size]);
  const items = list.getVirtualItems();
  const first = items[0]?.index ?? 0;
  const end = first + items.length;
  const { reachable, onKeyDown } = useArrows(box, rows, first, end, list.scrollToIndex);
  const top = rows[first]?.id;
  useEffect(() => onSee(top), [onSee, top]);
  const older = useStable(conversations.older);
  useEffect(() => {
    if (more && end >= rows.length && !problem) {
      older();
    }
  }, [more, end, rows.length, problem, older]);
  const track = () => {
    const element = box.current;
    const reading = element && (element.scrollTop > 0 || element.contains(document.activeElement));
    return reading ? hold() : release();
  };
  const toTop = () => {
    box.current?.scrollTo({ top: 0 });
    release();
  };
  return (
    <div className={styles.list} ref={place}>
      <div className={styles.new} role="status">
        {waiting > 0 && (
          <Button size="sm" icon="arrow-up" onClick={toTop}>
            {waiting < MAX_WAITING ? number(waiting) : `${number(MAX_WAITING)} or more`} new
          </Button>
        )}
      </div>
      <div
        className={styles.box}
        style={{ height }}
        ref={box}
        onScroll={track}
        onFocus={track}
        onBlur={() => setTimeout(track)}
      >
        <table
          className={cx(styles.table, card && styles.cards)}
          role="grid"
          aria-label="Conversations"
          aria-rowcount={more ? -1 : rows.length + 1}
          onKeyDown={onKeyDown}
        >
          <Heads order={order} onOrder={card ? undefined : onOrder} />
          <tbody>
            <Space height={first * size} />
            {rows.slice(first, end).map((row, i) => (
              <Row
                key={row.id}
                conversation={row}
                index={first + i + 2}
                to={linkTo(row)}
                reachable={first + i === reachable}
                workerName={workerName}
                card={card}
              />
            ))}
            <Space height={(rows.length - end) * size} />
          </tbody>
        </table>
      </div>
    </div>
  );
}

/** The height of the rows that are not rendered. */
function Space({ height }: { height: number }) {
  return height > 0 ? <tr role="presentation" aria-hidden="true" style={{ height }} /> : null;
}

/** The heads of the columns, which sort the rows. */
function Heads({ order, onOrder }: Pick<ListProps, 'order'> & Partial<Pick<ListProps, 'onOrder'>>) {
  return (
    <thead>
      <tr aria-rowindex={1}>
        {COLUMNS.map((name) => (
          <th key={name} scope="col" aria-sort={sortOf(order, name)}>
            {onOrder ? (
              <button type="button" onClick={() => onOrder(nextOrder(order, name))}>
                {name}
              </button>
            ) : (
              name
            )}
          </th>
        ))}
      </tr>
    </thead>
  );
}

function sortOf(order: Order, column: string) {
  return order === column ? 'ascending' : order === `-${column}` ? 'descending' : undefined;
}

const useStyles = stylesOf((theme) => ({
  list: { position: 'relative' },
  new: {
    position: 'absolute',
    zIndex: 2,
    top: ROW + 8,
    left: '50%',
    transform: 'translateX(-50%)',
  },
  box: { position: 'relative', overflow: 'auto', overflowAnchor: 'none' },
  table: {
    width: '100%',
    tableLayout: 'fixed',
    fontVariantNumeric: 'tabular-nums',
    '& thead th': {
      position: 'sticky',
      zIndex: 1,
      top: 0,
      height: ROW,
      padding: theme.spacing(0, 1),
      background: theme.colors.background.primary,
      borderBottom: `1px solid ${theme.colors.border.medium}`,
      color: theme.colors.text.secondary,
      fontWeight: theme.typography.fontWeightMedium,
    },
    '& th > button': {
      padding: 0,
      border: 0,
      background: 'none',
      font: 'inherit',
      '&:hover': { color: theme.colors.text.primary, textDecoration: 'underline' },
    },
    '& th[aria-sort] > button': { color: theme.colors.text.primary },
    '& th[aria-sort="ascending"] > button::after': { content: '" ▲" / ""' },
    '& th[aria-sort="descending"] > button::after': { content: '" ▼" / ""' },
    // Shares of the width: on a wall, the text is larger.
    '& th:nth-child(1)': { width: '9%' },
    '& th:nth-child(3)': { width: '7%' },
    '& th:nth-child(4)': { width: '20%' },
    '& th:nth-child(5)': { width: '8%' },
    '& th:nth-child(6)': { width: '15%' },
    '& th:nth-child(7)': { width: '9%' },
    '& th:nth-child(8)': { width: '11%' },
  },
  // The column heads stay for screen readers. Each card names its figures itself.
  cards: {
    '&, & tbody, & tbody tr[role]': { display: 'block' },
    '& thead': { position: 'absolute', clipPath: 'inset(50%)' },
  },
}));
