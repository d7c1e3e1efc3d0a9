import { figures, type Cluster, type Column, type LaneSnapshot } from '../../client';
import { errorList } from '../../lib/errorNames';
import { NOT_REPORTED, number, percent } from '../../lib/format';
import { capital } from '../../lib/text';
import { missingText, whyUnread } from '../../lib/unread';
import { lookupTags, shortName, THIS_TARGET } from '../Comparison/model';

/** One recorded value under a card. */
interface Note {
  /** Its column: "RR". */
  of?: string;
  text: string;
  /** Its origin, or why there is none. */
  word?: string;
}

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
  notes: Note[];
}

type Rate = 'output_tokens_per_second' | 'requests_per_second' | 'kv_hit_ratio';

/**
 * Returns the six cards: rates and the hit rate over the last 60 s, counts since the start, the queue now. Values of
 * the comparison cover the step instead, and are marked so. Only a running workload has figures. Without a lane, the
 * load generator is unreachable.
 */
export function toKpis(lane: LaneSnapshot | undefined): Kpi[] {
  const running = lane?.state.running ? lane : undefined;
  return [
    {
      name: figures.requests_per_second.name,
      meaning: 'Completed, last 60 s',
      text: number(running?.window.requests_per_second, 2),
      notes: recorded(lane, 'requests_per_second', (value) => number(value, 2)),
    },
    { name: figures.requests.name, meaning: 'Completed since start', text: number(running?.totals.ok), notes: [] },
    {
      name: 'Tokens/s',
      meaning: 'Output tokens, last 60 s',
      text: number(running?.window.output_tokens_per_second),
      notes: recorded(lane, 'output_tokens_per_second', (value) => number(value)),
    },
    {
      name: figures.kv_hit_ratio.name,
      meaning: kvSource(running),
      text: running?.kv.not_reported ? NOT_REPORTED : percent(running?.kv.hit_ratio),
      silent: running?.kv.not_reported !== undefined,
      notes: [...recorded(lane, 'kv_hit_ratio', percent), ...cachesAtStart(running)],
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
    notes: classes ? [{ text: classes }] : [],
  };
}

const CACHED = 'Prompt tokens from cache, last 60 s';

/** What the caches held at the beginning of the run, as its first turns measured. */
function cachesAtStart(lane: LaneSnapshot | undefined): Note[] {
  const state = lane?.state.caches?.state;
  return state ? [{ of: 'Caches at the start', text: state }] : [];
}

/** The source of the share of prompt tokens that came from a cache. */
function kvSource(lane: LaneSnapshot | undefined): string {
  if (lane?.kv.not_reported) {
    return capital(lane.kv.not_reported);
  }
  switch (lane && (lane.kv.hit_ratio === undefined ? 'none' : lane.kv.source)) {
    case 'none':
      return 'No turn has ended yet';
    case 'frontend':
      return `${CACHED}, reported by the frontend`;
    case 'engine':
      return `${CACHED}, reported by the engines`;
    default:
      return CACHED;
  }
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
    notes: problem ? [{ text: problem }] : [],
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

function recorded(lane: LaneSnapshot | undefined, rate: Rate, write: (value?: number) => string): Note[] {
  if (!lane) {
    return [];
  }
  const { columns, name } = lane.baseline;
  return columns.map((column: Column) => {
    const { value, lookup } = column[rate];
    const plain = name === THIS_TARGET ? 'measured' : 'recorded';
    return { of: shortName(column, columns), text: write(value), word: lookupTags[lookup] ?? plain };
  });
}
