import { useState } from 'react';

import type { Worker } from '../../client';

/** The window over which the requests sent to each worker are counted, in milliseconds. */
const MEMORY = 10_000;

/** The recent values of the workers' counters. */
interface Flow {
  readings: Reading[];
}

interface Reading {
  at: number;
  routed: Record<string, number>;
}

/** The flow before any snapshot. */
export const NO_FLOW: Flow = { readings: [] };

/**
 * Adds the counters of a snapshot at the given time in milliseconds, and drops those older than the window. It returns
 * the same flow where nothing changed.
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
 * Returns the share of requests of each worker, in their order: by the requests sent to it in the window, else by its
 * requests in flight, else equal. The shares add up to 1.
 */
export function shares(flow: Flow, workers: Worker[]): number[] {
  const first = flow.readings[0]?.routed ?? {};
  const sent = workers.map((w) => Math.max(0, (w.routed ?? 0) - (first[w.id] ?? w.routed ?? 0)));
  const candidates = [sent, workers.map((w) => w.inflight ?? 0), workers.map(() => 1)];
  const weights = candidates.find((c) => c.some((v) => v > 0)) ?? [];
  const sum = weights.reduce((a, b) => a + b, 0);
  return weights.map((v) => v / sum);
}

/** Returns the share of requests of each worker, updated with each snapshot; time is the snapshot's. */
export function useFlow(workers: Worker[], time: string | undefined): number[] {
  const [flow, setFlow] = useState(NO_FLOW);
  const next = time === undefined ? flow : advance(flow, workers, Date.parse(time));
  if (next !== flow) {
    setFlow(next);
  }
  return shares(next, workers);
}
