import type { Baseline, LaneSnapshot } from '../client';

/**
 * Returns the recorded table to quote: the one that the lane is compared with, else the first that has throughput. An
 * imported or measured baseline is not recorded.
 */
export function recordedTable(baselines: Baseline[] | undefined, lane: LaneSnapshot | undefined): Baseline | undefined {
  const recorded = baselines?.filter((baseline) => baseline.kind === 'recorded');
  return (
    recorded?.find((baseline) => baseline.name === lane?.baseline.name) ??
    recorded?.find((baseline) => baseline.rows.some((row) => row.output_tokens_per_second !== undefined)) ??
    recorded?.[0]
  );
}
