import file from './example.json';

/**
 * The specification's worked example: a request of 100 blocks and three workers. Every number is the specification's;
 * none is measured.
 */
export const EXAMPLE = file;

/** The figures of one worker in the example, in blocks. */
export interface ExampleRow {
  name: string;
  cached: number;
  prefill: number;
  decode: number;
  cost: number;
  chosen: boolean;
}

/** Computes the example by the router's formula: cost = overlap weight × prefill blocks + decode blocks. */
export function workOut({ blocks, weight, workers } = EXAMPLE): ExampleRow[] {
  const rows = workers.map((w) => ({
    ...w,
    prefill: blocks - w.cached,
    cost: weight * (blocks - w.cached) + w.decode,
  }));
  const lowest = Math.min(...rows.map((r) => r.cost));
  return rows.map((r) => ({ ...r, chosen: r.cost === lowest }));
}
