import type { Conversation, LiveTurn, Turn, Worker } from '../../../client';
import type { Fact } from '../../../components/Facts';
import { DASH, milliseconds, number, percent } from '../../../lib/format';
import { modeName } from '../../../lib/names';
import { nameOf } from '../../../lib/workers';

/** A turn's number and bar. */
export interface Bar {
  turn: number;
  /** Seconds to the first token; undefined where none arrived. */
  ttft?: number;
  /** The share of its prompt that came from a cache; undefined where the server does not report it. */
  cached?: number;
  state: 'ok' | 'failed' | 'cancelled' | 'waiting' | 'streaming' | 'planned';
}

/** Returns a bar for each past, streaming and planned turn. A conversation that has ended plans none. */
export function bars({ status, turns = [], live, turns_planned }: Conversation): Bar[] {
  const done = turns.map((turn): Bar => {
    const state = turn.status === 'ok' ? 'ok' : turn.status === 'error' ? 'failed' : 'cancelled';
    return { turn: turn.number, ttft: turn.ttft, cached: cachedShare(turn), state };
  });
  const now = isNew(live, turns) ? [streaming(live)] : [];
  const last = Math.max(0, ...[...done, ...now].map(({ turn }) => turn));
  const planned = status === 'active' ? Math.max(0, turns_planned - last) : 0;
  return [
    ...done,
    ...now,
    ...Array.from({ length: planned }, (_, i): Bar => ({ turn: last + i + 1, state: 'planned' })),
  ];
}

/** The share of a turn's prompt that came from a cache. */
function cachedShare({ prompt_tokens, cached_tokens }: Turn): number | undefined {
  return cached_tokens === undefined || !prompt_tokens ? undefined : cached_tokens / prompt_tokens;
}

function streaming({ number: turn, ttft }: LiveTurn): Bar {
  return { turn, ttft, state: ttft === undefined ? 'waiting' : 'streaming' };
}

/** Whether a streaming turn is not among those that have ended. For a moment it can be in both lists. */
export function isNew(live: LiveTurn | undefined, turns: Turn[]): live is LiveTurn {
  return live !== undefined && !turns.some((turn) => turn.number === live.number);
}

/** Describes the bars in a sentence. */
export function summary(all: Bar[]): string {
  const { ttft: first, state } = all.find(({ turn }) => turn === 1) ?? {};
  const later = all.filter(({ turn, ttft }) => turn > 1 && ttft !== undefined).map(({ ttft }) => ttft as number);
  if (first === undefined) {
    const over = state === 'failed' || state === 'cancelled';
    return over ? 'The first turn ended without a first token.' : 'The first turn has no first token yet.';
  }
  if (later.length === 0) {
    return `First turn ${milliseconds(first)}; no later turns yet.`;
  }
  const [low, high] = [Math.min(...later), Math.max(...later)].map((value) => milliseconds(value));
  return (
    `First turn ${milliseconds(first)}; later ones ` + `${low === high ? low : `${low.replace(' ms', '')} to ${high}`}.`
  );
}

/** Explains why a first turn is as fast as later ones, where its cached starter is the reason. */
export function sharedStarter(all: Bar[]): string | undefined {
  const cached = all.find(({ turn }) => turn === 1)?.cached;
  return cached !== undefined && cached >= MOST_CACHED
    ? `The first turn already found ${percent(cached)} of its prompt in cache: other ` +
        'conversations use the same opening text.'
    : undefined;
}

/** The share of a prompt from which most of it counts as cached. */
const MOST_CACHED = 0.5;

/** Returns the measurements of a turn. */
export function figures(turn: Turn, workerName: (id: string) => string): Fact[] {
  const { ttft, first_answer, itl_p50, itl_estimated, output_tokens, latency } = turn;
  const { prompt_tokens, cached_tokens, worker, mode, token_source } = turn;
  const share = cachedShare(turn);
  const cached =
    cached_tokens === undefined
      ? remarkIfAnswered(turn, 'cached tokens not reported')
      : `${number(cached_tokens)} cached${share === undefined ? '' : ` (${percent(share)})`}`;
  return [
    ['TTFT', milliseconds(ttft)],
    ...(first_answer === undefined ? [] : [['First answer', milliseconds(first_answer)] satisfies Fact]),
    ['ITL p50', milliseconds(itl_p50), itl_p50 !== undefined && itl_estimated ? 'estimated' : undefined],
    ['Tokens', number(output_tokens), token_source === 'chunks' ? 'estimated' : undefined],
    ['End-to-end latency', milliseconds(latency)],
    ['Prompt', prompt_tokens === undefined ? DASH : `${number(prompt_tokens)} tokens`, cached],
    ['Worker', worker === undefined ? DASH : workerName(worker)],
    ['Routing', modeName(mode)],
  ];
}

/** Returns the remark on a value that the server reports. */
function remarkIfAnswered({ prompt_tokens }: Turn, remark: string): string | undefined {
  return prompt_tokens === undefined ? undefined : remark;
}

/** Returns why a turn is excluded from comparisons; undefined where it counts. */
export function uncountedReason({ counted, status }: Turn): string | undefined {
  if (counted) {
    return undefined;
  }
  switch (status) {
    case 'error':
      return 'it failed';
    case 'cancelled':
      return 'a stop or a change of mode ended it';
    default:
      return 'it did not start and end within one settled step';
  }
}

/** Names workers by the cluster's current names. A worker that is no longer listed has the end of its id. */
export function namer(workers: Worker[]): (id: string) => string {
  return (id) => nameOf(id, workers) ?? id;
}

/** Returns the workers that served a conversation, in the order of its turns. */
export function workersOf({ turns = [], live }: Conversation): string[] {
  return Array.from(new Set([...turns, ...(live ? [live] : [])].flatMap(({ worker }) => worker ?? [])));
}
