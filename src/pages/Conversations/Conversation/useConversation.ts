import { readConversation, useClient, usePolled, type Conversation, type Polled, type Problem } from '../../../client';

/** The interval between requests for a conversation in progress, in milliseconds. */
export const FOLLOW_EVERY = 700;

/** The pause after a failed request, in milliseconds. */
export const RETRY_EVERY = 3000;

/** The loaded state of a conversation. */
interface Followed {
  conversation?: Conversation;
  problem?: Problem;
  /** Whether there is none with this id. */
  missing: boolean;
}

/** Polls a conversation until it has ended. The id must not change between renders. */
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
