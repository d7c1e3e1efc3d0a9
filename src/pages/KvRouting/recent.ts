import type { Conversation, Turn, Worker } from '../../client';
import { nameOf } from '../../lib/workers';

/** The reported routing of a turn. */
interface RoutedTurn {
  id: string;
  conversation: string;
  number: number;
  worker?: string;
  prompt?: number;
  /** Ratios of the prompt, 0 to 1: as the router predicted it, and as the engine reported it. */
  predicted?: number;
  cached?: number;
}

/** Returns the last turns of these conversations that ended well, newest first. */
export function recentTurns(conversations: Conversation[], workers: Worker[], limit: number): RoutedTurn[] {
  return conversations
    .flatMap((c) => c.turns ?? [])
    .filter((t) => t.status === 'ok')
    .sort((a, b) => Date.parse(b.ended) - Date.parse(a.ended))
    .slice(0, limit)
    .map((t) => toRouted(t, workers));
}

function toRouted(turn: Turn, workers: Worker[]): RoutedTurn {
  const { prompt_tokens, cached_tokens } = turn;
  return {
    id: turn.request_id,
    conversation: turn.conversation,
    number: turn.number,
    worker: nameOf(turn.worker, workers),
    prompt: prompt_tokens,
    predicted: turn.predicted_ratio,
    cached: prompt_tokens && cached_tokens !== undefined ? cached_tokens / prompt_tokens : undefined,
  };
}
