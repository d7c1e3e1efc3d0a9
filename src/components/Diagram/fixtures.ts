import type { Cluster, LaneSnapshot, Worker } from '../../client';
import { laneSnapshot, type LaneChange } from '../../test/fixtures';

/** The n-th worker of a cluster. */
export function worker(n: number, change: Partial<Worker> = {}): Worker {
  return {
    id: String(1000 + n),
    name: `worker-${n}`,
    inflight: 10 + n,
    waiting: n,
    queue_seconds: 0.06,
    routed: 50 + n,
    cache_use: 0.42,
    gpus: [{ index: '0', utilisation: 0.8 }],
    ...change,
  };
}

/** A cluster of these workers, as read from Prometheus. */
export function cluster(workers: Worker[], change: Partial<Cluster> = {}): Cluster {
  return {
    available: true,
    source: 'prometheus',
    queued: 2,
    inflight: 33,
    kv: {},
    speculation: {},
    workers,
    age_seconds: 0.5,
    ...change,
  };
}

/** Two of 2,000 workers, and the summary of all. */
export function manyWorkers(): Cluster {
  return cluster([worker(0), worker(1999)], {
    all_workers: {
      count: 2000,
      gpus: 16000,
      waiting: 70,
      inflight: { min: 0, p10: 3, p50: 12, p90: 20, max: 31 },
      cache_use: { min: 0.01, p10: 0.1, p50: 0.42, p90: 0.6, max: 0.71 },
    },
  });
}

/** The changes to a lane with this number of workers. */
export function laneChange(workers: number, change: LaneChange = {}): LaneChange {
  const all = Array.from({ length: workers }, (_, i) => worker(i));
  return { kv: { hit_ratio: 0.942, source: 'usage' }, cluster: cluster(all), ...change };
}

/** A lane with this number of workers. */
export function laneOn(workers: number, change: LaneChange = {}): LaneSnapshot {
  return laneSnapshot(laneChange(workers, change));
}
