import { figures, type Cluster, type LaneSnapshot } from '../../client';
import { errorList } from '../../lib/errorNames';
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
 * Returns the cards beside the figures of the comparison: counts since the start, and the queue now. Only a running
 * workload has figures. Without a lane, the load generator is unreachable.
 */
export function toKpis(lane: LaneSnapshot | undefined): Kpi[] {
  const running = lane?.state.running ? lane : undefined;
  return [
    { name: figures.requests.name, meaning: 'Completed since start', text: number(running?.totals.ok) },
    queued(running),
    errors(running),
  ];
}

function errors(lane: LaneSnapshot | undefined): Kpi {
  const classes = lane && errorList(lane.totals.errors_by_class);
  return {
    name: figures.errors.name,
    meaning: 'Failed since start',
    text: number(lane?.totals.errors),
    bad: lane !== undefined && lane.totals.errors > 0,
    note: classes,
  };
}

/**
 * Formats the number of requests that wait at router and engines: a dash while the cluster cannot be read, words where
 * neither reports it.
 */
function queued(lane: LaneSnapshot | undefined): Kpi {
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
