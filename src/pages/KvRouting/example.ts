/**
 * The specification's worked example: a request of 100 blocks and three workers. Every number is the specification's;
 * none is measured.
 */
export const EXAMPLE = {
  blocks: 100,
  weight: 1,
  workers: [
    { name: 'Worker 1', cached: 20, decode: 10 },
    { name: 'Worker 2', cached: 75, decode: 5 },
    { name: 'Worker 3', cached: 10, decode: 9 },
  ],
};

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

/** The steps of the loop, in the order in which they are shown. */
export const STEPS = [
  {
    title: 'Event',
    summary: 'blocks stored, removed',
    text:
      'A worker that has computed blocks of a prompt keeps them and publishes “stored”; when ' +
      'it evicts blocks, it publishes “removed”.',
  },
  {
    title: 'Index',
    summary: 'who has this prefix?',
    text:
      'The router adds every event to one prefix tree for all workers. For a new prompt it ' +
      'looks up how many leading blocks each worker has.',
  },
  {
    title: 'Cost',
    summary: 'how much work would it be?',
    text:
      'The cost of a worker is the blocks it would have to prefill, times the overlap weight, ' +
      'plus the blocks it is already decoding.',
  },
  {
    title: 'Choice',
    summary: 'the lowest cost wins',
    text:
      'The lowest cost wins. The worker computes the rest of the prompt, stores its blocks and ' +
      'publishes them: the loop starts again.',
  },
] as const;
