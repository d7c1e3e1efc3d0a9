import { useMemo, useState } from 'react';

import type { Conversation } from '../../client';
import { hitRate, workersIn } from './figures';
import { durationOf } from './useClock';

/** The values by which the rows can be sorted, by the names of their columns. Rows without a value are last. */
const values = {
  Status: ({ status }) => status,
  Topic: ({ topic }) => topic,
  Turns: ({ turns_done }) => turns_done,
  'TTFT by turn, ms': ({ figures = [] }) =>
    figures.length > 0 ? Math.max(...figures.map(({ ttft }) => ttft ?? 0)) : undefined,
  'Hit rate': hitRate,
  Worker: (row) => workersIn(row)[0],
  Duration: (row) => durationOf(row, Date.now()),
  Started: ({ started }) => started,
} satisfies Record<string, (row: Conversation) => string | number | undefined>;

/** The names of the columns. */
export const COLUMNS = Object.keys(values) as Array<keyof typeof values>;

/** The order of the rows: a column, with a minus in front where the largest is first; undefined is by interest. */
export type Order = string | undefined;

/** Returns the order after a click on a column: the largest values first, then the least, then by interest. */
export function nextOrder(order: Order, column: string): Order {
  return order === `-${column}` ? column : order === column ? undefined : `-${column}`;
}

/** Returns rows, which are newest first, in an order. By interest, those in progress that have a turn are first. */
export function inOrder(rows: Conversation[], order: Order): Conversation[] {
  const column = COLUMNS.find((name) => name === order?.replace('-', ''));
  if (!column) {
    const has = ({ status, turns_done }: Conversation) => Number(status === 'active' && turns_done > 0);
    return [...rows].sort((a, b) => has(b) - has(a));
  }
  const sign = order?.startsWith('-') ? -1 : 1;
  const value: (row: Conversation) => string | number | undefined = values[column];
  return [...rows].sort((a, b) => {
    const [x, y] = [value(a), value(b)];
    if (x === undefined || y === undefined || x === y) {
      return Number(x === undefined) - Number(y === undefined);
    }
    return x < y ? -sign : sign;
  });
}

/** Returns rows in an order. While they are held, known rows keep their places. */
export function useOrdered(rows: Conversation[], order: Order, held: boolean): Conversation[] {
  const [fixed, fix] = useState<{ order: Order; places: Map<string, number> }>();
  const kept = held && fixed && fixed.order === order ? fixed.places : undefined;
  const ordered = useMemo(() => {
    const place = ({ id }: Conversation) => kept?.get(id) ?? rows.length;
    return kept ? [...rows].sort((a, b) => place(a) - place(b)) : inOrder(rows, order);
  }, [rows, order, kept]);
  if (held && !kept) {
    fix({ order, places: new Map(ordered.map(({ id }, i) => [id, i])) }); // the next render uses it
  } else if (!held && fixed) {
    fix(undefined);
  }
  return ordered;
}
