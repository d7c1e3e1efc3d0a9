import { useEffect, useRef } from 'react';
import { cx } from '@emotion/css';
import { useVirtualizer } from '@tanstack/react-virtual';

import { Button } from '@grafana/ui';

import type { Conversation } from '../../client';
import { number } from '../../lib/format';
import { stylesOf } from '../../lib/styles';
import { useNarrow } from '../../lib/useNarrow';
import { useStable } from '../../lib/useStable';
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
  linkTo(conversation: Conversation): string;
  /** Called with the conversation at the top of the visible part. */
  onSee(id: string | undefined): void;
}

/** A table that renders only its visible rows. While it is scrolled down or has the keyboard focus, new rows wait. */
export function List({ conversations, lane, linkTo, onSee }: ListProps) {
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
          <Heads />
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

function Heads() {
  return (
    <thead>
      <tr aria-rowindex={1}>
        <th scope="col">Status</th>
        <th scope="col">Topic</th>
        <th scope="col">Turns</th>
        <th scope="col">TTFT by turn, ms</th>
        <th scope="col">Hit rate</th>
        <th scope="col">Worker</th>
        <th scope="col">Duration</th>
        <th scope="col">Started</th>
        <th scope="col">Lane</th>
      </tr>
    </thead>
  );
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
    '& th:nth-child(1)': { width: 100 },
    '& th:nth-child(3)': { width: 70 },
    '& th:nth-child(4)': { width: 190 },
    '& th:nth-child(5)': { width: 80 },
    '& th:nth-child(6)': { width: 150 },
    '& th:nth-child(7)': { width: 90 },
    '& th:nth-child(8)': { width: 140 },
    '& th:nth-child(9)': { width: 60 },
  },
  // The column heads stay for screen readers. Each card names its figures itself.
  cards: {
    '&, & tbody, & tbody tr[role]': { display: 'block' },
    '& thead': { position: 'absolute', clipPath: 'inset(50%)' },
  },
}));
