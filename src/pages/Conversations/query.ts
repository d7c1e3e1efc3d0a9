import { asStatus } from './Filters';
import type { Filter } from './useConversations';

/** What an address's query asks for. */
export function filterOf(params: URLSearchParams): Filter {
  return { status: asStatus(params.get('status')), topic: params.get('topic') || undefined };
}

/** The query of a filter, with its question mark; empty where nothing is asked for. */
export function queryOf({ status, topic }: Filter): string {
  const params = new URLSearchParams({ ...(status && { status }), ...(topic && { topic }) }).toString();
  return params && `?${params}`;
}
