import { useEffect, useState } from 'react';

import type { Conversation } from '../../../client';
import { orderOf } from '../pagedList';
import { useConversations, type Filter } from '../useConversations';

/** The number of conversations of the list in which neighbors are searched. */
const REACH = 2000;

/** The conversations before and after one, among those of a filter. */
export interface Neighbors {
  newer?: Conversation;
  older?: Conversation;
}

/** Returns the neighbors of a conversation in the list that it was opened from. */
export function useNeighbors(of: Conversation | undefined, filter: Filter): Neighbors {
  const [seenNone] = useState(() => () => undefined);
  const { rows, more, problem, older } = useConversations(filter, seenNone, 2 * REACH);
  const place = of && orderOf(of);
  const next = place === undefined ? -1 : rows.findIndex((row) => orderOf(row) < place);
  const missing = place !== undefined && next < 0 && more && !problem && rows.length < REACH;
  useEffect(() => {
    if (missing) {
      older();
    }
  });
  if (place === undefined) {
    return {};
  }
  const newer = (next < 0 ? rows : rows.slice(0, next)).filter((row) => orderOf(row) > place);
  return { newer: newer[newer.length - 1], older: rows[next] };
}
