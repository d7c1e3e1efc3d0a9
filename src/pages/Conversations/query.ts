import { asStatus } from './Filters';
import { LANE } from '../lane';
import type { Filter } from './useConversations';

/** Parses the filter of an address's query. */
export function filterOf(params: URLSearchParams): Filter {
  return {
    lane: params.get('lane') || LANE,
    status: asStatus(params.get('status')),
    topic: params.get('topic') || undefined,
  };
}

/** Returns the query of a filter, with its question mark; empty without a filter. */
export function queryOf({ lane, status, topic }: Filter): string {
  const params = new URLSearchParams({
    ...(lane !== LANE && { lane }),
    ...(status && { status }),
    ...(topic && { topic }),
  }).toString();
  return params && `?${params}`;
}
