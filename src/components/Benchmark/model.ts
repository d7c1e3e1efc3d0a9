import type { Baseline, BaselineRow, Mode, Settings, Slider, Speculation } from '../../client';
import { improvement, MS, type Format, type Improvement } from '../../lib/format';
import { sloLevel, type SLOLevel } from '../../lib/slo';

/** One recorded value, or that there is none. */
export interface Cell {
  value: number;
  format: Format;
  slo?: SLOLevel;
}

/** What a row holds of one metric; a part that was not recorded is undefined. */
export interface Group {
  roundRobin?: Cell;
  kv?: Cell;
  /** How much better KV-aware routing did than round-robin. */
  gain?: Improvement;
}

/** One level. */
export interface Row {
  concurrency: number;
  speculation: Speculation;
  /** Whether it is the level of the running workload. */
  current: boolean;
  groups: Group[];
}

/** One metric, which heads three columns. */
export interface Metric {
  key: string;
  name: string;
  /** What is to be known of it, in a word. */
  note?: string;
}

/** The table, whole. */
export interface BenchmarkModel {
  metrics: Metric[];
  rows: Row[];
  /** Whether there are rows of several kinds of speculation. */
  speculations: boolean;
  /** How many rows there would be with all levels. */
  all: number;
}

interface MetricInfo extends Metric {
  value(row: BaselineRow): number | undefined;
  format: Format;
  slo?: 'ttft' | 'tpot';
  /** Throughput: more is better. */
  more?: boolean;
}

/** The unit stands in the head. */
const ms: Format = { ...MS, unit: undefined, decimals: 1 };

const metrics: MetricInfo[] = [
  { key: 'ttft', name: 'TTFT p95, ms', value: (row) => row.ttft.p95, format: ms, slo: 'ttft' },
  { key: 'tpot', name: 'TPOT p95, ms', value: (row) => row.tpot.p95, format: ms, slo: 'tpot' },
  {
    key: 'derived',
    name: 'TPOT p95, ms',
    note: 'derived',
    value: (row) => row.tpot_derived.p95,
    format: ms,
    slo: 'tpot',
  },
  {
    key: 'tokens',
    name: 'Output tokens/s',
    value: (row) => row.output_tokens_per_second,
    format: {},
    more: true,
  },
];

interface Input {
  baseline: Baseline;
  settings: Settings;
  /** The concurrency of the running workload; undefined while none runs. */
  concurrency?: number;
  /** All levels, not only those of the slider. */
  all: boolean;
}

/** Makes the table of one baseline: round-robin beside KV-aware routing at each level. */
export function toBenchmark({ baseline, settings, concurrency, all }: Input): BenchmarkModel {
  const shown = metrics.filter(({ value }) => baseline.rows.some((row) => value(row) !== undefined));
  const pairs = pairUp(baseline.rows);
  const chosen = all ? pairs : pairs.filter((pair) => isOnSlider(pair.concurrency, settings.slider));
  return {
    metrics: shown.map(({ key, name, note }) => ({ key, name, note })),
    rows: chosen.map((pair) => ({
      concurrency: pair.concurrency,
      speculation: pair.speculation,
      current: pair.concurrency === concurrency,
      groups: shown.map((metric) => group(metric, pair, settings)),
    })),
    speculations: new Set(pairs.map((pair) => pair.speculation)).size > 1,
    all: pairs.length,
  };
}

/** Whether the slider can be set to a level. */
function isOnSlider(level: number, { min, max, increment }: Slider): boolean {
  return level >= min && level <= max && (level - min) % increment === 0;
}

interface Pair {
  concurrency: number;
  speculation: Speculation;
  rows: Partial<Record<Mode, BaselineRow>>;
}

/** The rows of one level and speculation together, levels ascending. Of several of one mode, the newest counts. */
function pairUp(rows: BaselineRow[]): Pair[] {
  const pairs = new Map<string, Pair>();
  for (const row of rows.filter(({ mode }) => mode !== 'least_loaded')) {
    const { concurrency, speculation, mode } = row;
    const key = `${concurrency} ${speculation}`;
    const pair = pairs.get(key) ?? { concurrency, speculation, rows: {} };
    const before = pair.rows[mode];
    if (!before || (before.measured ?? '') <= (row.measured ?? '')) {
      pair.rows[mode] = row;
    }
    pairs.set(key, pair);
  }
  return Array.from(pairs.values()).sort(
    (a, b) => a.concurrency - b.concurrency || a.speculation.localeCompare(b.speculation)
  );
}

function group(metric: MetricInfo, { rows }: Pair, settings: Settings): Group {
  const before = rows.round_robin && metric.value(rows.round_robin);
  const after = rows.kv && metric.value(rows.kv);
  const cell = (value: number | undefined): Cell | undefined =>
    value === undefined
      ? undefined
      : { value, format: metric.format, slo: metric.slo && sloLevel(value, settings.slo[metric.slo]) };
  return { roundRobin: cell(before), kv: cell(after), gain: gain(before, after, metric.more === true) };
}

/** By how many per cent of round-robin's value KV-aware routing is better; of latencies, less is better. */
function gain(before: number | undefined, after: number | undefined, more: boolean): Improvement | undefined {
  if (!before || after === undefined) {
    return undefined;
  }
  return improvement(((more ? after - before : before - after) / before) * 100);
}

/** The baseline to begin with: the settings' own, else a recorded one, else whichever there is. */
export function defaultBaseline(baselines: Baseline[], { default_baseline }: Settings): Baseline | undefined {
  const recorded = baselines.filter(({ kind }) => kind !== 'measured');
  return recorded.find(({ name }) => name === default_baseline) ?? recorded[0] ?? baselines[0];
}
