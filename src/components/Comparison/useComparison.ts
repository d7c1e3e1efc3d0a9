import { compareWith, useClient, usePolled, type Comparison, type LaneSnapshot } from '../../client';

/** The interval between requests for a chosen comparison, in milliseconds. */
export const COMPARE_EVERY = 1000;

/** A comparison, and the failure of the last request for it. */
interface Compared {
  comparison?: Comparison;
  problem?: string;
}

/**
 * Returns the comparison with a chosen baseline, requested every second while live. Without a choice, it returns the
 * one in the snapshot.
 */
export function useComparison(lane: LaneSnapshot | undefined, live: boolean, baseline: string): Compared {
  const client = useClient();
  const name = lane?.name;
  const inSnapshot = baseline === '' || baseline === lane?.baseline.name;
  const load = name !== undefined && live && !inSnapshot ? () => compareWith(client, name, baseline) : undefined;
  const { value, problem } = usePolled(load, COMPARE_EVERY, `comparison ${name} ${baseline}`);
  return inSnapshot ? { comparison: lane?.baseline } : { comparison: value, problem: problem?.message };
}
