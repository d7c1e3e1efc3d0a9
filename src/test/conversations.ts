import type { Conversation, ConversationList, Turn } from '../client';

/** The start of the first conversation. */
const BEGIN = Date.parse('2026-11-20T09:00:00Z');

/** Returns conversation k. Each begins a second after the one before, and ends after 90 s. */
export function conversation(k: number, change: Partial<Conversation> = {}): Conversation {
  const started = new Date(BEGIN + k * 1000);
  return {
    id: `main-run-${k}`,
    lane: 'main',
    number: k,
    topic: `Topic ${k % 10}`,
    starter: `topic-${k % 10}`,
    status: 'completed',
    turns_planned: 4,
    turns_done: 4,
    started: started.toISOString(),
    ended: new Date(started.getTime() + 90_000).toISOString(),
    ...change,
  };
}

/** Turns with nothing cached at first and most of the prompt cached later. */
export const figures: Conversation['figures'] = [
  { ttft: 0.612, worker: '11', prompt_tokens: 4000, cached_tokens: 0 },
  { ttft: 0.224, worker: '22', prompt_tokens: 6000, cached_tokens: 4000 },
  { ttft: undefined, worker: '11' },
];

/** Returns the API's answer on a path of the list, of conversations with ascending numbers. */
export function listOf(all: Conversation[], path: string): ConversationList {
  const params = new URL(path, 'http://test').searchParams;
  const [status, topic] = [params.get('status'), params.get('topic')?.toLowerCase()];
  const limit = Number(params.get('limit') ?? 50);
  const cursor = params.get('cursor');
  const found = all
    .filter((c) => (!status || c.status === status) && (!topic || c.topic.toLowerCase().includes(topic)))
    .filter((c) => cursor === null || c.number < Number(cursor))
    .sort((a, b) => b.number - a.number);
  const conversations = found.slice(0, limit);
  const last = conversations[conversations.length - 1];
  return { conversations, ...(found.length > limit && { next_cursor: String(last.number) }) };
}

/** Returns a turn that ended well and counts. */
export function turn(number: number, change: Partial<Turn> = {}): Turn {
  return {
    lane: 'main',
    conversation: 'main-run-7',
    number,
    request_id: `main-run-7-${number}`,
    step: 3,
    concurrency: 120,
    mode: 'kv',
    speculation: 'off',
    counted: true,
    status: 'ok',
    started: '2026-11-20T09:00:07Z',
    ended: '2026-11-20T09:00:27Z',
    ttft: number === 1 ? 0.612 : 0.224,
    itl_p50: 0.0221,
    itl_estimated: true,
    latency: 20.31,
    prompt_tokens: 4000,
    cached_tokens: number === 1 ? 0 : 3960,
    output_tokens: 830,
    worker: '11',
    user_message: `Question ${number}`,
    assistant_message: `Answer ${number}`,
    ...change,
  };
}
