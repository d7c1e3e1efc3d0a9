import { figures, type Cluster, type LaneSnapshot } from '../../client';
import { errorList } from '../../lib/errorNames';
import { figureFormats } from '../../lib/figures';
import { digits, NOT_REPORTED, number, percent } from '../../lib/format';
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
 * Returns the six cards: rates and the hit rate of the step, as in the comparison; counts since the start; the queue
 * now. Only a running workload has figures. Without a lane, the load generator is unreachable.
 */
export function toKpis(lane: LaneSnapshot | undefined): Kpi[] {
  const running = lane?.state.running ? lane : undefined;
  const rate = (key: 'requests_per_second' | 'output_tokens_per_second'): Kpi => ({
    name: figures[key].name,
    meaning: 'This step',
    text: digits(running?.baseline[`live_${key}`], figureFormats[key]),
  });
  return [
    rate('requests_per_second'),
    { name: figures.requests.name, meaning: 'Completed since start', text: number(running?.totals.ok) },
    rate('output_tokens_per_second'),
    {
      name: figures.kv_hit_ratio.name,
      meaning: kvSource(running),
      text: running?.kv.not_reported ? NOT_REPORTED : percent(hitRatio(running)),
      silent: running?.kv.not_reported !== undefined,
      note: cachesAtStart(running),
    },
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

/** What the caches held at the beginning of the run, as its first turns measured. */
function cachesAtStart(lane: LaneSnapshot | undefined): string | undefined {
  const state = lane?.state.caches?.state;
  return state && `Caches at the start ${state}`;
}

/** The share of the step's prompt tokens that came from a cache; that of the last 60 s where only the cluster has it. */
function hitRatio(lane: LaneSnapshot | undefined): number | undefined {
  return lane?.baseline.live_kv_hit_ratio ?? lane?.kv.hit_ratio;
}

/** The source of the share of prompt tokens that came from a cache. */
function kvSource(lane: LaneSnapshot | undefined): string {
  if (lane?.kv.not_reported) {
    return capital(lane.kv.not_reported);
  }
  if (lane && hitRatio(lane) === undefined) {
    return 'No turn has ended yet';
  }
  if (!lane || lane.baseline.live_kv_hit_ratio !== undefined) {
    return 'Prompt tokens from cache, this step';
  }
  const { source } = lane.kv;
  const by = source === 'usage' ? '' : `, reported by the ${source === 'frontend' ? source : 'engines'}`;
  return `Prompt tokens from cache, last 60 s${by}`;
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
