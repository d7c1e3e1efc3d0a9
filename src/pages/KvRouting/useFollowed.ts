import { useState } from 'react';

import {
  limits,
  listConversations,
  readConversation,
  useClient,
  usePolled,
  type Conversation,
  type Problem,
} from '../../client';
import { LANE } from '../lane';
import { nextConversation, follow, siblings } from './tree';

/** The intervals between requests for the conversation, and for those in progress, in milliseconds. */
const DETAIL_EVERY = 2000;
const LIST_EVERY = 4000;

/** The number of conversations in progress: one page of the list. */
const LIMIT = limits['conversations.limit'].max;

/** The conversation whose tree is shown. */
interface Followed {
  conversation?: Conversation;
  siblings: number;
  /** Whether all choices are loaded. */
  none: boolean;
  problem?: Problem;
  /** Selects another one; undefined where there is none. */
  next?(): void;
}

/**
 * Selects one conversation after the other while active. A pinned one stays. Time is the load generator's, in
 * milliseconds.
 */
export function useFollowed(active: boolean, pinned: string | undefined, time: number): Followed {
  const client = useClient();
  const [current, setCurrent] = useState<string>();
  const loadList = () => listConversations(client, LANE, { status: 'active', limit: LIMIT });
  const list = usePolled(active ? loadList : undefined, LIST_EVERY, 'active conversations');
  const id = pinned ?? current;
  const load = active && id ? () => readConversation(client, id) : undefined;
  const detail = usePolled(load, DETAIL_EVERY, `conversation ${id}`);
  const inProgress = list.value?.conversations ?? [];
  const wanted = list.value && !pinned ? follow(current, detail.value, inProgress, time) : current;
  if (wanted !== current) {
    setCurrent(wanted);
  }
  const other = pinned ? undefined : nextConversation(current, inProgress);
  return {
    conversation: detail.value,
    siblings: detail.value ? siblings(detail.value, inProgress) : 0,
    none: list.value !== undefined && id === undefined,
    problem: detail.problem ?? list.problem,
    next: other === undefined ? undefined : () => setCurrent(other),
  };
}
