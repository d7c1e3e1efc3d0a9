import { readConversation, useClient, usePolled, type Conversation, type Polled, type Problem } from '../../../client';

/** How often a conversation in progress is asked for, in milliseconds. */
export const FOLLOW_EVERY = 700;

/** How often one that could not be read is asked for again, in milliseconds. */
export const RETRY_EVERY = 3000;

/** A conversation, as far as it is known. */
interface Followed {
  conversation?: Conversation;
  problem?: Problem;
  /** Whether there is none with this id. */
  missing: boolean;
}

/** Follows a conversation until it has ended. For one id only. */
export function useConversation(id: string): Followed {
  const client = useClient();
  const { value, problem } = usePolled(() => readConversation(client, id), nextAfter, `conversation ${id}`);
  return { conversation: value, problem, missing: isMissing(problem) };
}

function isMissing(problem: Problem | undefined): boolean {
  return problem?.status === 404;
}

function nextAfter({ value, problem }: Polled<Conversation>): number | false {
  if (problem) {
    return !isMissing(problem) && RETRY_EVERY;
  }
  return (value === undefined || value.status === 'active') && FOLLOW_EVERY;
}
