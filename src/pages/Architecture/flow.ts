import type { Worker } from '../../client';

/** How long the requests that a worker was sent count for where requests go in the drawing, in milliseconds. */
const MEMORY = 10_000;

/** What was seen of the workers' counters lately. */
interface Flow {
  readings: Reading[];
}

interface Reading {
  at: number;
  routed: Record<string, number>;
}

/** Nothing seen yet. */
export const NO_FLOW: Flow = { readings: [] };

/**
 * Adds what a snapshot of the given time (milliseconds) says, and forgets what is too old; the same flow where it
 * says nothing new.
 */
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
