import { limits, listConversations, turnFields, type Client, type Conversation } from '../../client';
import { toCsv } from '../../lib/csv';
import { around } from '../span';
import { hitRate, workersIn } from './figures';
import type { Filter } from './useConversations';

/** Reads all current conversations of a filter, newest first, until the signal is aborted. */
export async function readAll(client: Client, filter: Filter, signal: AbortSignal): Promise<Conversation[]> {
  const all: Conversation[] = [];
  const { lane, status, topic } = filter;
  const query = { ...around(filter), status, topic };
  let cursor: string | undefined;
  do {
    const page = await listConversations(client, lane, { ...query, cursor, limit: limits['conversations.limit'].max });
    all.push(...page.conversations);
    cursor = page.next_cursor;
  } while (cursor !== undefined && !signal.aborted);
  return all;
}

/** Writes a line for each conversation. TTFT is in seconds, by turn. */
export function conversationsCsv(conversations: Conversation[]): string {
  const names = ['id', 'number', 'topic', 'starter', 'status', 'error_class', 'turns_planned', 'turns_done'] as const;
  return toCsv(
    [...names, 'started', 'ended', 'ttft', 'kv_hit_ratio', 'workers'],
    conversations.map((one) => [
      ...names.map((name) => one[name]),
      one.started,
      one.ended,
      one.figures?.map(({ ttft }) => ttft ?? '').join(' '),
      hitRate(one),
      workersIn(one).join(' '),
    ])
  );
}

/** The columns of a turn's line: its measurements and its messages. Times are in seconds. */
const turnNames = [...turnFields, 'user_message', 'assistant_message'] as const;

/** Writes a line for each turn of a conversation that has ended. */
export function turnsCsv({ turns = [] }: Conversation): string {
  return toCsv(
    [...turnNames],
    turns.map((turn) => turnNames.map((name) => turn[name]))
  );
}
