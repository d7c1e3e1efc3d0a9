import type { Conversation, Turn } from '../../client';
import { conversation as anyConversation, turn as anyTurn } from '../../test/conversations';
import type { Candidate, Decision } from './routing';

/** A worker with the figures of a router with an overlap weight of 1, for a prompt of 3,200 tokens in blocks of 32. */
export function candidate(n: number, overlap: number, decode: number): Candidate {
  const prefill = 3200 - overlap * 32;
  return {
    worker: String(1000 + n),
    name: `worker-${n}`,
    overlap_blocks: overlap,
    prefill_tokens: prefill,
    decode_blocks: decode,
    requests: 4,
    cost: prefill / 32 + decode,
  };
}

/** The specification's worked example as a decision: worker 1 wins. */
export function decision(change: Partial<Decision> = {}): Decision {
  return {
    seconds: 12.5,
    request_id: 'main-abc-7-2',
    mode: 'kv',
    pinned: false,
    prompt_tokens: 3200,
    block_tokens: 32,
    chosen: 1,
    candidates: [candidate(0, 20, 10), candidate(1, 75, 5), candidate(2, 10, 9)],
    ...change,
  };
}

/** A turn that ended well. */
export function turn(number: number, change: Partial<Turn> = {}): Turn {
  return anyTurn(number, {
    conversation: 'main-abc-7',
    request_id: `main-abc-7-${number}`,
    ended: `2026-11-20T09:59:${10 + number}Z`,
    prompt_tokens: 3000 + number * 1000,
    cached_tokens: number === 1 ? 3500 : 2900 + number * 1000,
    output_tokens: 800,
    worker: '1001',
    predicted_ratio: 0.9,
    ...change,
  });
}

/** A conversation in progress with these turns. */
export function conversation(turns: Turn[], change: Partial<Conversation> = {}): Conversation {
  return anyConversation(7, {
    id: 'main-abc-7',
    topic: 'Observability',
    starter: 'observability',
    status: 'active',
    turns_done: turns.length,
    started: '2026-11-20T09:58:00Z',
    ended: undefined,
    turns,
    ...change,
  });
}
