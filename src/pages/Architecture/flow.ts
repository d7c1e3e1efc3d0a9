import type { Worker } from '../../client';

/** How long the requests that a worker was sent count for where the dots go, in milliseconds. */
const MEMORY = 10_000;

/** No more dots a second than can be told apart. */
export const MAX_DOTS = 4;

/** How long a dot travels, in seconds. */
export const TRAVEL = 2;

/** What was seen of the workers' counters lately. */
export interface Flow {
  readings: Reading[];
}

interface Reading {
  at: number;
  routed: Record<string, number>;
}

/** Nothing seen yet. */
export const NO_FLOW: Flow = { readings: [] };

/** Adds what a snapshot of the given time (milliseconds) says, and forgets what is too old; the same flow where it says nothing new. */
export function advance(flow: Flow, workers: Worker[], at: number): Flow {
  const last = flow.readings.at(-1);
  if (last && last.at === at) {
    return flow;
  }
  const routed = Object.fromEntries(workers.map((w) => [w.id, w.routed ?? 0]));
  const kept = flow.readings.filter((r) => r.at > at - MEMORY && r.at < at);
  return { readings: [...kept, { at, routed }] };
}

/**
 * The share of requests that each worker gets, in their order: by what it was
 * sent lately, else by what it has in flight, else all alike. Sums up to 1.
 */
export function shares(flow: Flow, workers: Worker[]): number[] {
  const first = flow.readings[0]?.routed ?? {};
  const sent = workers.map((w) => Math.max(0, (w.routed ?? 0) - (first[w.id] ?? w.routed ?? 0)));
  const candidates = [sent, workers.map((w) => w.inflight ?? 0), workers.map(() => 1)];
  const weights = candidates.find((c) => c.some((v) => v > 0)) ?? [];
  const sum = weights.reduce((a, b) => a + b, 0);
  return weights.map((v) => v / sum);
}

/** Dots on the way to one worker: how many there are, and how often each starts anew, in seconds. */
export interface Dots {
  count: number;
  period: number;
}

/**
 * How many dots travel to each worker at so many requests a second. Rates go in
 * steps of a factor of two, so that the animation seldom starts anew.
 */
export function dots(requestsPerSecond: number, share: number[]): Dots[] {
  const rate = Math.min(requestsPerSecond, MAX_DOTS);
  return share.map((s) => {
    const wanted = rate * s;
    if (!(wanted > 0.02)) {
      return { count: 0, period: 0 };
    }
    const stepped = 2 ** Math.round(Math.log2(wanted));
    const count = Math.max(1, Math.ceil(stepped * TRAVEL));
    return { count, period: count / stepped };
  });
}
