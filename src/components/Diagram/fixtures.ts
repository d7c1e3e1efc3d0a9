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

/** A cluster of these workers, as Prometheus tells it. */
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

/** What of a lane on so many workers there is to change. */
export function laneChange(workers: number, change: LaneChange = {}): LaneChange {
  const all = Array.from({ length: workers }, (_, i) => worker(i));
  return { kv: { hit_ratio: 0.942, source: 'usage' }, cluster: cluster(all), ...change };
}

/** A lane on so many workers. */
export function laneOn(workers: number, change: LaneChange = {}): LaneSnapshot {
  return laneSnapshot(laneChange(workers, change));
}
