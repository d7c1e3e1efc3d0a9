import type { Conversation, Turn, Worker } from '../../client';
import { nameOf, workerOf } from '../../lib/workers';

/** One turn as a branch of the conversation's prefix tree. Lengths are in tokens. */
export interface Branch {
  number: number;
  /** Its start: the end of the branch before it, 0 for the first. */
  from: number;
  prompt: number;
  /** Undefined where the engine does not report it. */
  cached?: number;
  output: number;
  /** The index of its worker in the cluster; -1 for an unknown one. */
  worker: number;
  workerName?: string;
  /** Whether it went to another worker than the turn before. */
  moved: boolean;
}

/** A conversation's prompts as a tree that grows turn by turn. */
export interface Tree {
  branches: Branch[];
  /** Turns without a count of tokens: failed, or still streaming. */
  others: Array<{ number: number; state: 'streaming' | 'failed' | 'to come'; workerName?: string }>;
  /** The length of the longest prompt with its answer. */
  tokens: number;
  /** The part of the first prompt that a worker held already, left there by other conversations on the same starter. */
  shared?: number;
}

/** Builds the tree of a conversation from its turns. */
export function buildTree(conversation: Conversation, workers: Worker[]): Tree {
  const counted = (conversation.turns ?? []).filter(isCounted);
  const branches = counted.map((turn, i) => toBranch(turn, counted[i - 1], workers));
  return {
    branches,
    others: uncountedTurns(conversation, workers),
    tokens: Math.max(0, ...branches.map((b) => b.prompt + b.output)),
    shared: branches[0]?.number === 1 ? branches[0].cached : undefined,
  };
}

type Counted = Turn & { prompt_tokens: number };

function isCounted(turn: Turn): turn is Counted {
  return turn.status === 'ok' && turn.prompt_tokens !== undefined;
}

function toBranch(turn: Counted, before: Counted | undefined, workers: Worker[]): Branch {
  return {
    number: turn.number,
    from: Math.min(before?.prompt_tokens ?? 0, turn.prompt_tokens),
    prompt: turn.prompt_tokens,
    cached: turn.cached_tokens === undefined ? undefined : Math.min(turn.cached_tokens, turn.prompt_tokens),
    output: turn.output_tokens ?? 0,
    worker: workers.findIndex((w) => w === workerOf(turn.worker, workers)),
    workerName: nameOf(turn.worker, workers),
    moved: before?.worker !== undefined && turn.worker !== undefined && before.worker !== turn.worker,
  };
}

function uncountedTurns(conversation: Conversation, workers: Worker[]): Tree['others'] {
  const { turns = [], live, turns_planned, status } = conversation;
  const failed = turns.filter((t) => !isCounted(t)).map((t) => ({ number: t.number, state: 'failed' as const }));
  const last = Math.max(live?.number ?? 0, ...turns.map((t) => t.number));
  const streaming = live
    ? [{ number: live.number, state: 'streaming' as const, workerName: nameOf(live.worker, workers) }]
    : [];
  const ahead = status === 'active' ? Math.max(0, turns_planned - last) : 0;
  const coming = Array.from({ length: ahead }, (_, i) => ({ number: last + 1 + i, state: 'to come' as const }));
  return [...failed, ...streaming, ...coming];
}

/** How long a conversation that has ended is still shown, in milliseconds. */
export const SHOWN_AFTER_END = 10_000;

/**
 * Returns the conversation to show: the same one until some time after its end, then one in progress with most of its
 * turns still to come. Time is the load generator's, in milliseconds.
 */
export function follow(
  current: string | undefined,
  detail: Conversation | undefined,
  active: Conversation[],
  time: number
): string | undefined {
  const ended =
    detail?.id === current && detail?.ended !== undefined && time - Date.parse(detail.ended) > SHOWN_AFTER_END;
  const gone = detail === undefined && !active.some((c) => c.id === current);
  if (current !== undefined && !ended && !gone) {
    return current;
  }
  return nextConversation(current, active) ?? current;
}

/**
 * Returns another conversation in progress whose first turn has ended and most turns are still to come, if there is
 * one.
 */
export function nextConversation(current: string | undefined, active: Conversation[]): string | undefined {
  const others = active.filter((c) => c.id !== current);
  const ahead = (c: Conversation) => (c.turns_done === 0 ? 0 : c.turns_planned - c.turns_done);
  return [...others].sort((a, b) => ahead(b) - ahead(a))[0]?.id;
}

/** Counts the other conversations in progress on the same starter. */
export function siblings({ id, starter }: Conversation, active: Conversation[]): number {
  return active.filter((c) => c.id !== id && c.starter === starter).length;
}
