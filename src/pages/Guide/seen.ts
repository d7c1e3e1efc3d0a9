import type { Mode } from '../../client';

/** What was measured in a settled step. */
export interface Settled {
  /** When, by the load generator's clock. */
  at: string;
  concurrency: number;
  /** TTFT p95 in seconds. */
  ttft?: number;
  /** Share of cached prompt tokens. */
  hit?: number;
}

/** Two values beside each other, and what kind of figure the second is. */
export interface Beside {
  at: string;
  concurrency: number;
  live: number;
  other: number;
  word: string;
}

/**
 * What was seen of the demonstration since a moment. Plain data, so that it
 * outlives a change of page; nothing is in it that no snapshot, event or
 * measured row has told.
 */
export interface Progress {
  /** Since when, by the load generator's clock; absent until the first snapshot. */
  since?: string;
  started?: { at: string; concurrency: number; mode: Mode };
  /** By mode and concurrency: "kv/120". */
  settled: Record<string, Settled>;
  /** The lowest concurrency that was seen to run, and since when. */
  lowest?: { at: string; concurrency: number };
  raised?: { at: string; from: number; to: number };
  /** The mode seen last while it ran. */
  mode?: Mode;
  changed?: { at: string; from: Mode; to: Mode };
  improved?: Beside;
  hit?: Beside;
  /** Median TTFT of the first and the third turn, in seconds. */
  turns?: { at: string; first: number; later: number };
  slo?: { at: string; concurrency: number; ttft: number; tpot: number };
  /** Turns that failed since then; how many failed in the run that was seen last, and how many had ended well before. */
  errors: { total: number; run?: string; inRun: number; okBefore: number };
  /** Whether a turn has ended well since then. */
  answered: boolean;
}

/** Nothing seen yet. */
export const nothing: Progress = { settled: {}, errors: { total: 0, inRun: 0, okBefore: 0 }, answered: false };

/** Whether nothing of it is another object. */
export function isSame(a: Progress, b: Progress): boolean {
  return Object.entries(b).every(([key, value]) => a[key as keyof Progress] === value);
}

/** How settled steps are told apart. */
export function settledKey(mode: Mode, concurrency: number): string {
  return `${mode}/${concurrency}`;
}
