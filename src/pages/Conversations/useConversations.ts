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
import { PagedList, orderOf, PAGE } from './pagedList';

/** What of the conversations is wanted. */
export interface Filter {
  lane: string;
  status?: ConversationStatus;
  /** A part of the topic, in whatever case. */
  topic?: string;
}

/** How often the newest are asked for, in milliseconds. */
export const REFRESH_EVERY = 3000;

/** How many new ones may wait above the reader's place before no more are asked for. */
export const MOST_NEW = 1000;

/** The conversations of a filter, as far as they are needed. */
export interface Conversations {
  /** Newest first, without those that wait. */
  rows: Conversation[];
  /** How many new ones wait above, while the reader's place is held. */
  waiting: number;
  /** Whether there are older ones. */
  more: boolean;
  /** Whether the first answer is still due. */
  loading: boolean;
  problem?: Problem;
  /** Holds the reader's place: new ones wait. */
  hold(): void;
  /** Lets the new ones in. */
  release(): void;
  /** Reads older ones. */
  older(): void;
}

/**
 * The conversations of a filter, polled. seen returns the one that is in view.
 * Beyond keep rows, those far from it are dropped.
 */
export function useConversations(
  { lane, status, topic }: Filter,
  seen: () => string | undefined,
  keep = 2 * PAGE
): Conversations {
  const client = useClient();
  const id = useId();
  const key = JSON.stringify([lane, status, topic]);
  const list = useMemo(
    () => new PagedList((cursor) => listConversations(client, lane, { status, topic, cursor, limit: PAGE })),
    [client, lane, status, topic]
  );
  const known = useSyncExternalStore(list.subscribe, list.get);
  const [held, setHeld] = useState<{ key: string; first: string }>();
  const [failure, setFailure] = useState<{ key: string; problem: Problem }>();
  const place = held?.key === key ? held.first : undefined;
  const waiting = place === undefined ? 0 : newerThan(known.rows, place);
  const refresh = async () => {
    await list.refresh(seen());
    setFailure(undefined); // older ones may be asked for again
    if (place === undefined && list.get().rows.length > keep) {
      list.trim();
    }
  };
  const { at, problem } = usePolled(waiting < MOST_NEW ? refresh : undefined, REFRESH_EVERY, `${id} ${key}`);
  const older = () => list.older().catch((error: unknown) => setFailure({ key, problem: asProblem(error) }));
  return {
    rows: useMemo(() => known.rows.slice(waiting), [known.rows, waiting]),
    waiting,
    more: known.more,
    loading: at === undefined && problem === undefined,
    problem: problem ?? (failure?.key === key ? failure.problem : undefined),
    hold: () =>
      known.rows.length > 0 && setHeld((now) => (now?.key === key ? now : { key, first: orderOf(known.rows[0]) })),
    release: () => setHeld(undefined),
    older,
  };
}

/** How many rows are newer than a place; none where nothing is left of what was there. */
function newerThan(rows: Conversation[], place: string): number {
  return Math.max(
    0,
    rows.findIndex((row) => orderOf(row) <= place)
  );
}
