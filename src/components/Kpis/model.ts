import { figures, type Cluster, type LaneSnapshot } from '../../client';
import { number } from '../../lib/format';
import { capital } from '../../lib/text';
import { missingText, whyUnread } from '../../lib/unread';

/** The content of one card. */
export interface Kpi {
  name: string;
  /** The explanation of the name. */
  meaning: string;
  /** A dash where there is no value yet, words where it is not reported. */
  text: string;
  bad?: boolean;
  /** Whether the text is words in place of a value. */
  silent?: boolean;
  note?: string;
}

/**
 * Returns the number of requests that wait at router and engines: a dash while the cluster cannot be read, words where
 * neither reports it. Only a running workload has one.
 */
export function queued(lane: LaneSnapshot | undefined): Kpi {
  const problem = lane && unavailable(lane.cluster);
  const silent = lane !== undefined && !problem && lane.cluster.queued === undefined;
  const why = lane && whyUnread(lane.cluster, 'frontend');
  return {
    name: figures.queued.name,
    meaning: silent ? capital(why ?? 'neither router nor engines report their queue') : whereQueued(lane?.cluster),
    text: silent ? missingText(why) : number(lane?.cluster.queued),
    silent,
    note: problem,
  };
}

/** Names the places at which requests wait. The queue of a Dynamo frontend contains that of its engines. */
function whereQueued({ queued: all, queued_router: router, queued_engines: engines }: Partial<Cluster> = {}): string {
  if (all === undefined) {
    return 'Waiting at router and engines';
  }
  if (router === undefined || engines === undefined) {
    return `Waiting at the ${engines === undefined ? 'router' : 'engines'}`;
  }
  return all === router + engines
    ? `${number(router)} at the router, ${number(engines)} at the engines`
    : `At the frontend, ${number(engines)} of them at the engines`;
}

/** Explains why a cluster has no figures; undefined where it has. */
export function unavailable({ available, source, unread }: LaneSnapshot['cluster']): string | undefined {
  if (available) {
    return undefined;
  }
  if (source === 'prometheus' && unread?.workers) {
    return 'Prometheus has no data on this cluster'; // it answers, so it is not the failed part
  }
  return source === 'prometheus' ? 'Prometheus unavailable' : 'Cluster metrics unavailable';
}
