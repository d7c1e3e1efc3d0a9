/**
 * The specification's worked example: a request of 100 blocks and three workers.
 * Every number of it stands there; none is measured.
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

/** What the example shows of one worker. In blocks. */
export interface ExampleRow {
  name: string;
  cached: number;
  prefill: number;
  decode: number;
  cost: number;
  chosen: boolean;
}

/** Works the example out by the router's formula: cost = overlap weight × prefill blocks + decode blocks. */
export function workOut({ blocks, weight, workers } = EXAMPLE): ExampleRow[] {
  const rows = workers.map((w) => ({
    ...w,
    prefill: blocks - w.cached,
    cost: weight * (blocks - w.cached) + w.decode,
  }));
  const lowest = Math.min(...rows.map((r) => r.cost));
  return rows.map((r) => ({ ...r, chosen: r.cost === lowest }));
}

/** The steps of the loop, as they are told one after the other. */
export const STEPS = [
  {
    title: 'Event',
    summary: 'blocks stored, removed',
    text: 'A worker that has computed blocks of a prompt keeps them and announces “stored”; when it must make room, it announces “removed”.',
  },
  {
    title: 'Index',
    summary: 'who holds this prefix?',
    text: 'The router puts every event into one prefix tree of all workers. For a new prompt it reads off how many of its first blocks each worker holds.',
  },
  {
    title: 'Cost',
    summary: 'what would it take?',
    text: 'What a worker does not hold it would have to prefill. That, times the overlap weight, plus the blocks that it is decoding already, is its cost.',
  },
  {
    title: 'Choice',
    summary: 'the lowest cost wins',
    text: 'The lowest cost wins. The worker computes the rest of the prompt, stores its blocks, and announces them: the loop begins again.',
  },
] as const;
