import { useState } from 'react';

import type { Worker } from '../../client';

/** The window over which the requests sent to each worker are counted, in milliseconds. */
const MEMORY = 10_000;

/** The values of the workers' counters at a time in milliseconds. */
interface Reading {
  at: number;
  routed: Record<string, number>;
}

/** Adds the counters of a snapshot and drops those older than the window. Without a change, readings are the same. */
export function advance(readings: Reading[], workers: Worker[], at: number): Reading[] {
  if (readings.at(-1)?.at === at) {
    return readings;
  }
  const routed = Object.fromEntries(workers.map((w) => [w.id, w.routed ?? 0]));
  return [...readings.filter((r) => r.at > at - MEMORY && r.at < at), { at, routed }];
}

/**
 * Returns the share of requests of each worker, in their order: by the requests sent to it in the window, else by its
 * requests in flight, else equal. The shares add up to 1.
 */
export function shares(readings: Reading[], workers: Worker[]): number[] {
  const first = readings[0]?.routed ?? {};
  const sent = workers.map((w) => Math.max(0, (w.routed ?? 0) - (first[w.id] ?? w.routed ?? 0)));
  const candidates = [sent, workers.map((w) => w.inflight ?? 0), workers.map(() => 1)];
  const weights = candidates.find((c) => c.some((v) => v > 0)) ?? [];
  const sum = weights.reduce((a, b) => a + b, 0);
  return weights.map((v) => v / sum);
}

/** Returns the share of requests of each worker, updated with each snapshot; time is the snapshot's. */
export function useFlow(workers: Worker[], time: string | undefined): number[] {
  const [flow, setFlow] = useState<Reading[]>([]);
  const next = time === undefined ? flow : advance(flow, workers, Date.parse(time));
  if (next !== flow) {
    setFlow(next);
  }
  return shares(next, workers);
}
