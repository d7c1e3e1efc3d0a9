import { toModel, type Cell, type Standing, type TableModel } from '../../components/Comparison';
import type { Cluster, Live, Worker } from '../../client';
import { inMs, isWithheld, metricName, worst } from '../../lib/clientError';
import { DASH, digits, written } from '../../lib/format';
import { lastKnown, type Known } from '../../lib/known';
import type { SLOLevel } from '../../lib/slo';
import { targetTrouble } from '../../lib/target';
import { workerCount } from '../../lib/workers';
import { LANE } from '../lane';
import type { Value } from './history';

/** What a figure is compared with. */
export interface Reference {
  /** Of which mode, in short. */
  of: string;
  /** Its value with its unit; a dash without one. */
  text: string;
  /** How it was found, in a word. */
  word: string;
  difference?: Standing;
}

/** One of the large figures. */
export interface Figure {
  name: string;
  /** Which curve belongs to it. */
  value: Value;
  /** A dash where there is nothing live. */
  text: string;
  unit: string;
  /** Why there is nothing, or what is to be known of it. */
  tag?: string;
  slo?: SLOLevel;
  references: Reference[];
}

/** The large figures, as the comparison has them: it alone decides on words and colours. */
export function toFigures(known: Known | undefined, isLive: boolean): Figure[] {
  if (!known) {
    return figures.map(({ table: _, row: __, quantile: ___, ...figure }) => ({
      ...figure,
      text: DASH,
      references: [],
    }));
  }
  const { lane, settings, time } = known;
  const model = toModel({ comparison: lane.baseline, lane: isLive ? lane : undefined, settings, time });
  return figures.map(({ table, row, quantile, ...figure }) => ({ ...figure, ...read(model[table], row, quantile) }));
}

interface FigureInfo extends Pick<Figure, 'name' | 'value' | 'unit'> {
  table: 'latencies' | 'rates';
  row: string;
  quantile: string;
}

const figures: FigureInfo[] = [
  { name: 'TTFT p95', value: 'ttft_p95', unit: 'ms', table: 'latencies', row: 'TTFT', quantile: 'p95' },
  {
    name: 'Output tokens/s',
    value: 'output_tokens_per_second',
    unit: '',
    table: 'rates',
    row: 'Output tokens/s',
    quantile: '',
  },
];

/** Reads one row of a table, of its columns of one quantile: the live one first. */
function read({ heads, rows }: TableModel, name: string, quantile: string) {
  const row = rows.find((r) => r.name === name);
  const columns = heads
    .map((head, i) => ({ head, cell: row?.cells[i] }))
    .filter((column): column is { head: typeof column.head; cell: Cell } =>
      Boolean(column.cell && column.head.key.endsWith(` ${quantile}`))
    );
  const live = columns.find(({ head }) => head.live)?.cell;
  return {
    text: live ? digits(live.value, live.format) : DASH,
    tag: live?.tag,
    slo: live?.slo,
    references: columns
      .filter(({ head }) => !head.live)
      .map(({ head, cell }) => ({
        of: quantile === '' ? head.label : head.label.replace(` ${quantile}`, ''),
        text: written(cell.value, cell.format),
        word: cell.tag ?? head.note,
        difference: cell.difference,
      })),
  };
}

/** One bar: a worker and how many requests are in flight there. */
export interface Bar {
  name: string;
  /** Undefined where the engine does not tell. */
  inflight?: number;
  /** Of the longest bar, from 0 to 1. */
  share: number;
}

/** How many bars there is room for. */
export const MAX_BARS = 8;

/** The workers as bars, the busiest ones where there are too many, and how many have none. */
export function toBars(cluster: Cluster): { bars: Bar[]; more: number } {
  const listed = cluster.workers;
  const shown = listed.length <= MAX_BARS ? listed : [...listed].sort(busier).slice(0, MAX_BARS);
  const longest = Math.max(...shown.map(({ inflight }) => inflight ?? 0));
  const bars = shown.map(({ name, inflight }) => ({
    name,
    inflight,
    share: longest > 0 ? (inflight ?? 0) / longest : 0,
  }));
  return { bars, more: workerCount(cluster) - bars.length };
}

function busier(a: Worker, b: Worker): number {
  return (b.inflight ?? -1) - (a.inflight ?? -1);
}

/** What is wrong, in a sentence each: a crowd must not read old or spoilt figures as good ones. */
export function troubles({ state, lane }: Live): string[] {
  if (state.status === 'lost') {
    return [`No data from the load generator since ${clock(state.since)}. ${state.problem}`];
  }
  if (!lane || state.status !== 'live') {
    return [];
  }
  const { client } = state.snapshot;
  const change = lane.state.mode_change;
  const trouble = targetTrouble(lane);
  return [
    trouble && `${trouble.title}. ${trouble.detail}`,
    lane.state.running && isWithheld(client) && `${client.reason}.`,
    change?.failed && `The mode was not changed: ${change.message}`,
    change?.phase === 'waiting_for_operator' && `Waiting for the operator: ${change.message}`,
  ].filter((words) => typeof words === 'string');
}

/** A small mark where the load generator's own error is noticeable, though it changes nothing. */
export function errorMark({ state, lane }: Live): { text: string; title: string } | undefined {
  if (state.status !== 'live' || !lane?.state.running) {
    return undefined;
  }
  const { client } = state.snapshot;
  const error = client.verdict === 'ok' || isWithheld(client) ? undefined : worst(client);
  return error && { text: `own error ≤ ${inMs(error.error_seconds)} (${metricName(error)})`, title: client.reason };
}

/** A time of day, to the minute or the second. */
export function clock(time: number, to: 'minute' | 'second' = 'second'): string {
  return new Date(time).toLocaleTimeString([], {
    hour: '2-digit',
    minute: '2-digit',
    second: to === 'second' ? '2-digit' : undefined,
    hourCycle: 'h23',
  });
}

/** What was last known of the lane. */
export const knownOf = (live: Live) => lastKnown(live, LANE);
