import type { Column, LaneSnapshot } from '../../client';
import { errorList } from '../../lib/errorNames';
import { number, percent } from '../../lib/format';
import { lookupTags, shortName, THIS_TARGET } from '../Comparison/model';

/** One recorded value under a card. */
export interface Note {
  /** Of which column it is: "RR". */
  of?: string;
  text: string;
  /** How it was found, or why there is none. */
  word?: string;
}

/** What one card says. */
export interface Kpi {
  name: string;
  /** What the name stands for. */
  meaning: string;
  /** A dash where there is no value. */
  text: string;
  bad?: boolean;
  notes: Note[];
}

type Rate = 'output_tokens_per_second' | 'requests_per_second' | 'kv_hit_ratio';

/** The six cards. Only a workload that runs has figures; without a lane the load generator is lost. */
export function toKpis(lane: LaneSnapshot | undefined): Kpi[] {
  const running = lane?.state.running ? lane : undefined;
  return [
    {
      name: 'RPS',
      meaning: 'Requests per second',
      text: number(running?.window.requests_per_second, 2),
      notes: recorded(lane, 'requests_per_second', (value) => number(value, 2)),
    },
    { name: 'Requests', meaning: 'Completed since the start', text: number(running?.totals.ok), notes: [] },
    {
      name: 'TOPS',
      meaning: 'Output tokens per second',
      text: number(running?.window.output_tokens_per_second),
      notes: recorded(lane, 'output_tokens_per_second', (value) => number(value)),
    },
    {
      name: 'KV cache hit',
      meaning: kvSource(running),
      text: percent(running?.kv.hit_ratio),
      notes: recorded(lane, 'kv_hit_ratio', percent),
    },
    {
      name: 'Queued',
      meaning: 'Waiting at the frontend',
      text: number(running?.cluster.queued),
      notes: queueNotes(running),
    },
    errors(running),
  ];
}

function errors(lane: LaneSnapshot | undefined): Kpi {
  const classes = lane && errorList(lane.totals.errors_by_class);
  return {
    name: 'Errors',
    meaning: 'Failed since the start',
    text: number(lane?.totals.errors),
    bad: lane !== undefined && lane.totals.errors > 0,
    notes: classes ? [{ text: classes }] : [],
  };
}

/** Who saw the share of prompt tokens that came from a cache. */
function kvSource(lane: LaneSnapshot | undefined): string {
  switch (lane && (lane.kv.hit_ratio === undefined ? 'nobody' : lane.kv.source)) {
    case 'nobody':
      return lane?.window.metrics.ttft.n ? 'Not reported by this engine' : 'No turn has ended yet';
    case 'frontend':
      return 'Prompt tokens from a cache, as the frontend saw it';
    case 'engine':
      return 'Prompt tokens from a cache, as the engines saw it';
    default:
      return 'Prompt tokens from a cache';
  }
}

function queueNotes(lane: LaneSnapshot | undefined): Note[] {
  if (!lane || lane.cluster.queued !== undefined) {
    return [];
  }
  return [{ text: unavailable(lane.cluster) ?? 'Not reported by this engine' }];
}

/** Why a cluster has no figures; undefined where it has. */
export function unavailable({ available, source }: LaneSnapshot['cluster']): string | undefined {
  if (available) {
    return undefined;
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
