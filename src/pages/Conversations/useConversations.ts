import { useId, useMemo, useState, useSyncExternalStore } from 'react';

import {
  asProblem,
  listConversations,
  useClient,
  usePolled,
  type Conversation,
  type ConversationStatus,
  type Problem,
} from '../../client';
import { around, type Span } from '../span';
import type { Order } from './order';
import { PagedList, orderOf, PAGE } from './pagedList';

/** The filter of the conversations. */
export interface Filter extends Span {
  lane: string;
  status?: ConversationStatus;
  /** A part of the topic; case does not matter. */
  topic?: string;
  /** The order in which the page shows them. */
  order?: Order;
}

/** The interval between requests for the newest conversations, in milliseconds. */
export const REFRESH_EVERY = 3000;

/** The number of waiting rows from which no more are requested. */
export const MAX_WAITING = 1000;

/** The loaded conversations of a filter. */
export interface Conversations {
  /** Newest first, without those that wait. */
  rows: Conversation[];
  /** How many new rows wait above while the position is kept. */
  waiting: number;
  more: boolean;
  /** Whether the position is kept. */
  held: boolean;
  /** Whether the first answer is pending. */
  loading: boolean;
  problem?: Problem;
  /** Keeps the position: new rows wait. */
  hold(): void;
  /** Inserts the waiting rows. */
  release(): void;
  older(): void;
}

/**
 * Polls the conversations of a filter. seen returns the row in view. Beyond keep rows, those far from it are dropped.
 */
export function useConversations(
  { from, to, lane, status, topic }: Filter,
  seen: () => string | undefined,
  keep = 2 * PAGE
): Conversations {
  const client = useClient();
  const id = useId();
  const key = JSON.stringify([from, to, lane, status, topic]);
  const list = useMemo(
    () =>
      new PagedList((cursor) =>
        listConversations(client, lane, { ...around({ from, to }), status, topic, cursor, limit: PAGE })
      ),
    [client, from, to, lane, status, topic]
  );
  const known = useSyncExternalStore(list.subscribe, list.get);
  const [held, setHeld] = useState<{ key: string; first: string }>();
  const [failure, setFailure] = useState<{ key: string; problem: Problem }>();
  const place = held?.key === key ? held.first : undefined;
  const waiting = place === undefined ? 0 : newerThan(known.rows, place);
  const refresh = async () => {
    await list.refresh(seen());
    setFailure(undefined); // older ones may be requested again
    if (place === undefined && list.get().rows.length > keep) {
      list.trim();
    }
  };
  const { at, problem } = usePolled(waiting < MAX_WAITING ? refresh : undefined, REFRESH_EVERY, `${id} ${key}`);
  const older = () => list.older().catch((error: unknown) => setFailure({ key, problem: asProblem(error) }));
  return {
    rows: useMemo(() => known.rows.slice(waiting), [known.rows, waiting]),
    waiting,
    more: known.more,
    held: place !== undefined,
    loading: at === undefined && problem === undefined,
    problem: problem ?? (failure?.key === key ? failure.problem : undefined),
    hold: () =>
      known.rows.length > 0 && setHeld((now) => (now?.key === key ? now : { key, first: orderOf(known.rows[0]) })),
    release: () => setHeld(undefined),
    older,
  };
}

/** Counts the rows newer than a position; 0 where none of the earlier rows is left. */
function newerThan(rows: Conversation[], place: string): number {
  return Math.max(
    0,
    rows.findIndex((row) => orderOf(row) <= place)
  );
}
