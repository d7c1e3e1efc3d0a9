import { useState } from 'react';

import { readConversation, useClient, usePolled, type Conversation, type Problem } from '../../../client';

/** How often a conversation in progress is asked for, in milliseconds. */
export const FOLLOW_EVERY = 700;

/** How often one that could not be read is asked for again, in milliseconds. */
export const RETRY_EVERY = 3000;

/** A conversation, as far as it is known. */
export interface Followed {
  conversation?: Conversation;
  problem?: Problem;
  /** Whether there is none with this id. */
  missing: boolean;
}

/** Follows a conversation until it has ended. For one id only. */
export function useConversation(id: string): Followed {
  const client = useClient();
  const [pace, setPace] = useState<'follow' | 'retry' | 'rest'>('follow');
  const load = () => readConversation(client, id);
  const every = pace === 'retry' ? RETRY_EVERY : FOLLOW_EVERY;
  const { value, problem } = usePolled(pace === 'rest' ? undefined : load, every, id);
  const missing = problem?.status === 404;
  const due = missing || (value && value.status !== 'active' && !problem) ? 'rest' : problem ? 'retry' : 'follow';
  if (due !== pace) {
    setPace(due);
  }
  return { conversation: value, problem, missing };
}
