import type { Mode, ModeState } from '../../client';

/** The measurements of a settled step. */
export interface Settled {
  /** Its time by the load generator's clock. */
  at: string;
  concurrency: number;
  /** TTFT p95 in seconds. */
  ttft?: number;
  /** Its 95 % interval, where known. */
  interval?: [number, number];
  /** Share of cached prompt tokens. */
  hit?: number;
  /** Median ITL in seconds. */
  itl?: number;
  tokens?: number;
  /** Share of drafted tokens that were accepted. */
  acceptance?: number;
  /** Tokens per pass of the large model. */
  tokensPerStep?: number;
  /** Requests of the busiest worker minus those of the least busy: the sum over n samples, some seconds apart. */
  spread?: { sum: number; n: number };
}

/** Two values beside each other, and the kind of figure of the second. */
export interface Beside {
  at: string;
  concurrency: number;
  live: number;
  other: number;
  word: string;
}

/** Two lanes in different modes at the same time. */
export interface Lanes {
  at: string;
  concurrency: number;
  modes: [Mode, Mode];
}

/** The median TTFT of a first and of a later turn, in seconds. */
interface Turns {
  at: string;
  first: number;
  later: number;
}

/**
 * The observed progress of the demonstration since a moment. It is plain data, so it survives a change of page. It
 * comes from snapshots, events and measured rows.
 */
export interface Progress {
  /** The beginning by the load generator's clock; absent until the first snapshot. */
  since?: string;
  started?: { at: string; concurrency: number; mode: Mode };
  /** Settled steps by mode, speculation and concurrency: "kv/off/120". */
  settled: Record<string, Settled>;
  /** The lowest running concurrency so far, and its time. */
  lowest?: { at: string; concurrency: number };
  raised?: { at: string; from: number; to: number };
  /** The last mode while the workload ran. */
  mode?: Mode;
  changed?: { at: string; from: Mode; to: Mode };
  improved?: Beside;
  hit?: Beside;
  tokens?: Beside;
  /** Median TTFT of the first and the third turn under KV-aware routing, in seconds. */
  turns?: Turns;
  /** When it ran with an opening text for each conversation. */
  own?: { at: string; concurrency: number };
  /** Median TTFT of the first and the second turn under round-robin, each conversation with a text of its own. */
  blind?: Turns;
  /** When both lanes were first in different modes. */
  both?: Lanes;
  /** When both had settled so, with the TTFT p95 of each in seconds. */
  bothSettled?: Lanes & { ttft: [number, number] };
  slo?: { at: string; concurrency: number; ttft: number; tpot: number };
  /** Turns that failed since then, how many failed in the last observed run, and how many had ended well before. */
  errors: { total: number; run?: string; inRun: number; okBefore: number };
  /** Whether a turn has ended well since then. */
  answered: boolean;
}

/** The progress before any observation. */
export const NO_PROGRESS: Progress = { settled: {}, errors: { total: 0, inRun: 0, okBefore: 0 }, answered: false };

/** Whether all parts have the same identity. */
export function isSame(a: Progress, b: Progress): boolean {
  return Object.entries(b).every(([key, value]) => a[key as keyof Progress] === value);
}

/** The key that identifies a settled step. */
export function settledKey({ mode, speculation }: ModeState, concurrency: number): string {
  return `${mode}/${speculation}/${concurrency}`;
}

/** Returns the mean spread over the samples; undefined below the least number of them. */
export function meanSpread(settled: Settled | undefined): number | undefined {
  const { sum, n } = settled?.spread ?? { sum: 0, n: 0 };
  return n >= LOOKS ? sum / n : undefined;
}

/** The samples of a minute. */
const LOOKS = 6;
