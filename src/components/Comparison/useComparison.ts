import { compareWith, useClient, usePolled, type Comparison, type LaneSnapshot } from '../../client';

/** How often a comparison of one's own choice is asked for, in milliseconds. */
export const COMPARE_EVERY = 1000;

/** A comparison, and what went wrong with the last question for it. */
interface Compared {
  comparison?: Comparison;
  problem?: string;
}

/**
 * The comparison with a baseline of one's choice, asked for every second while
 * live; without a choice, the one that the snapshot holds.
 */
export function useComparison(lane: LaneSnapshot | undefined, live: boolean, baseline: string): Compared {
  const client = useClient();
  const name = lane?.name;
  const inSnapshot = baseline === '' || baseline === lane?.baseline.name;
  const load = name !== undefined && live && !inSnapshot ? () => compareWith(client, name, baseline) : undefined;
  const { value, problem } = usePolled(load, COMPARE_EVERY, `comparison ${name} ${baseline}`);
  return inSnapshot ? { comparison: lane?.baseline } : { comparison: value, problem: problem?.message };
}
