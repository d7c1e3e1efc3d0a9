import { scaleFrom, type CurveLine, type Point, type Scale, type Tick } from '../Curve';
import type { Baseline, BaselineRow, Improvement, Mode, Settings, Slider, Speculation } from '../../client';
import { digits, improvement, MS, PERCENT, SECONDS, type Format } from '../../lib/format';
import { isDecided, verdictText } from '../../lib/outcome';
import { hasDrafts } from '../../lib/phases';
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
  gain?: Gain;
}

/** How much better KV-aware routing did than round-robin: same where that is not certain. */
export interface Gain {
  kind: 'better' | 'worse' | 'same';
  text: string;
  verdict: string;
}

/** One level. */
export interface Row {
  concurrency: number;
  speculation: Speculation;
  /** Whether it is the level of the running workload. */
  current: boolean;
  groups: Group[];
}

/** Which of the tables a metric stands in. */
export type Kind = 'latency' | 'rate';

/** One metric, which heads three columns, and has a curve. */
export interface Metric {
  key: string;
  name: string;
  kind: Kind;
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
  /** The names of metrics of which the baseline has nothing. */
  missing: string[];
}

/** The part of a table with the metrics of one kind. */
export function only(model: BenchmarkModel, kind: Kind): BenchmarkModel {
  const at = model.metrics.flatMap((metric, i) => (metric.kind === kind ? [i] : []));
  const rows = model.rows.map((row) => ({ ...row, groups: at.map((i) => row.groups[i]) }));
  return { ...model, metrics: at.map((i) => model.metrics[i]), rows };
}

interface MetricInfo extends Metric {
  /** Its name in a baseline's advantages. */
  advantage?: string;
  value(row: BaselineRow): number | undefined;
  format: Format;
  slo?: 'ttft' | 'tpot';
  /** Throughput: more is better. */
  more?: boolean;
  /** In a table alone: nothing live compares with it, and a curve of the same name stands beside it. */
  tableOnly?: boolean;
  /** It stands only in a table where something was drafted, and is not missing elsewhere. */
  speculative?: boolean;
}

/** The unit stands in the head. */
const ms: Format = { ...MS, unit: undefined, decimals: 1 };

const s: Format = { ...SECONDS, unit: undefined };
const percents: Format = { ...PERCENT, unit: undefined };

const metrics: MetricInfo[] = [
  {
    key: 'ttft50',
    advantage: 'ttft_p50',
    name: 'TTFT p50, ms',
    kind: 'latency',
    value: (row) => row.ttft.p50,
    format: ms,
  },
  {
    key: 'ttft',
    advantage: 'ttft_p95',
    name: 'TTFT p95, ms',
    kind: 'latency',
    value: (row) => row.ttft.p95,
    format: ms,
    slo: 'ttft',
  },
  {
    key: 'tpot',
    advantage: 'tpot_p95',
    name: 'TPOT p95, ms',
    kind: 'latency',
    value: (row) => row.tpot.p95,
    format: ms,
    slo: 'tpot',
  },
  {
    key: 'derived',
    name: 'TPOT p95, ms',
    note: 'derived',
    kind: 'latency',
    value: (row) => row.tpot_derived.p95,
    format: ms,
    slo: 'tpot',
    tableOnly: true,
  },
  {
    key: 'e2e50',
    advantage: 'latency_p50',
    name: 'End-to-end latency p50, s',
    kind: 'latency',
    value: (row) => row.latency.p50,
    format: s,
  },
  {
    key: 'e2e',
    advantage: 'latency_p95',
    name: 'End-to-end latency p95, s',
    kind: 'latency',
    value: (row) => row.latency.p95,
    format: s,
  },
  {
    key: 'tokens',
    advantage: 'output_tokens_per_second',
    name: 'Output tokens/s',
    kind: 'rate',
    value: (row) => row.output_tokens_per_second,
    format: {},
    more: true,
  },
  {
    key: 'rps',
    advantage: 'requests_per_second',
    name: 'Requests/s',
    kind: 'rate',
    value: (row) => row.requests_per_second,
    format: { decimals: 2 },
    more: true,
  },
  {
    key: 'hits',
    advantage: 'kv_hit_ratio',
    name: 'KV hit rate, %',
    kind: 'rate',
    value: (row) => row.kv_hit_ratio,
    format: percents,
    more: true,
  },
  {
    key: 'errors',
    name: 'Errors, %',
    kind: 'rate',
    value: (row) => row.error_ratio,
    format: percents,
    tableOnly: true,
  },
  {
    key: 'acceptance',
    advantage: 'acceptance_rate',
    name: 'Acceptance rate, %',
    kind: 'rate',
    value: (row) => row.acceptance_rate,
    format: percents,
    more: true,
    speculative: true,
  },
  {
    key: 'steps',
    advantage: 'tokens_per_step',
    name: 'Tokens per step',
    kind: 'rate',
    value: (row) => row.tokens_per_step,
    format: { decimals: 2 },
    more: true,
    speculative: true,
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
  const drafted = hasDrafts(baseline.rows);
  const isRecorded = ({ value, speculative }: MetricInfo) =>
    (!speculative || drafted) && baseline.rows.some((row) => value(row) !== undefined);
  const shown = metrics.filter(isRecorded);
  const pairs = pairUp(baseline.rows);
  const whole = pairs.some(isWhole);
  const chosen = all
    ? pairs
    : pairs.filter((pair) => isOnSlider(pair.concurrency, settings.slider) && (!whole || isWhole(pair)));
  return {
    metrics: shown.map(({ key, name, note, kind }) => ({ key, name, note, kind })),
    rows: chosen.map((pair) => ({
      concurrency: pair.concurrency,
      speculation: pair.speculation,
      current: pair.concurrency === concurrency,
      groups: shown.map((metric) => group(metric, pair, baseline, settings)),
    })),
    speculations: new Set(pairs.map((pair) => pair.speculation)).size > 1,
    all: pairs.length,
    missing: metrics
      .filter((metric) => !metric.tableOnly && !metric.speculative && !isRecorded(metric))
      .map(({ name }) => name.split(',')[0]),
  };
}

/** Whether a level is one of those with every figure: requests a second are recorded last. */
function isWhole({ rows }: Pair): boolean {
  return Object.values(rows).some(({ requests_per_second }) => requests_per_second !== undefined);
}

/** Whether the slider can be set to a level. */
function isOnSlider(level: number, { min, max, increment }: Slider): boolean {
  return level >= min && level <= max && (level - min) % increment === 0;
}

/** One metric's curve against concurrency. */
export interface BenchmarkCurve {
  key: string;
  name: string;
  lines: CurveLine[];
  y: Scale;
  /** The objective, where the metric has one. */
  limit?: Tick;
}

/** The curves of what a table shows, one for each metric that is measured rather than derived. */
export function toCurves({ metrics: shown, rows, speculations }: BenchmarkModel, { slo }: Settings): BenchmarkCurve[] {
  return metrics.flatMap((metric) => {
    const i = shown.findIndex(({ key }) => key === metric.key);
    if (i < 0 || metric.tableOnly) {
      return [];
    }
    const { key, name, format } = metric;
    const lines = modes.flatMap(({ mode, cell }) =>
      Array.from(new Set(rows.map(({ speculation }) => speculation))).map((speculation): CurveLine => {
        const own = rows.filter((row) => row.speculation === speculation);
        const points = own.map(({ concurrency, groups }): Point => [concurrency, groups[i][cell]?.value]);
        return { key: speculations ? `${mode} ${speculation}` : mode, tone: mode, points, dots: true };
      })
    );
    const limit = metric.slo && {
      at: slo[metric.slo],
      text: `SLO ${digits(slo[metric.slo], { ...format, decimals: 0 })}`,
    };
    const values = lines.flatMap(({ points }) => points.map(([, y]) => y ?? 0));
    const y = scaleFrom(Math.max(...values, limit ? 1.1 * limit.at : 0), 4, (value) => digits(value, axis(format)));
    return [{ key, name, lines, y, limit }];
  });
}

/** An axis has no more decimals than its steps need. */
function axis(format: Format): Format {
  return { ...format, decimals: (inUnit) => (Number.isInteger(Math.round(inUnit * 1e6) / 1e6) ? 0 : 1) };
}

const modes = [
  { mode: 'round_robin', cell: 'roundRobin' },
  { mode: 'kv', cell: 'kv' },
] as const;

interface Pair {
  concurrency: number;
  speculation: Speculation;
  rows: Partial<Record<Mode, BaselineRow>>;
}

/** The rows of one level and speculation together, levels ascending. Of several of one mode, the newest counts. */
function pairUp(rows: BaselineRow[]): Pair[] {
  const pairs = new Map<string, Pair>();
  for (const row of rows.filter(({ mode }) => mode === 'kv' || mode === 'round_robin')) {
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

function slo({ slo }: MetricInfo, value: number, row: BaselineRow | undefined, settings: Settings) {
  return slo && sloLevel(value, settings.slo[slo], row?.errors?.[slo].p95, slo === 'tpot');
}

function group(
  metric: MetricInfo,
  { concurrency, speculation, rows }: Pair,
  baseline: Baseline,
  settings: Settings
): Group {
  const before = rows.round_robin && metric.value(rows.round_robin);
  const after = rows.kv && metric.value(rows.kv);
  const cell = (value: number | undefined, row: BaselineRow | undefined): Cell | undefined =>
    value === undefined ? undefined : { value, format: metric.format, slo: slo(metric, value, row, settings) };
  const found = baseline.advantages?.find((a) => a.concurrency === concurrency && a.speculation === speculation);
  return {
    roundRobin: cell(before, rows.round_robin),
    kv: cell(after, rows.kv),
    gain: gain(before, after, metric, metric.advantage === undefined ? undefined : found?.of[metric.advantage]),
  };
}

/**
 * By how many per cent of round-robin's value KV-aware routing is better; of latencies, less is better. Whether that is
 * certain comes from the load generator.
 */
function gain(
  before: number | undefined,
  after: number | undefined,
  { more }: MetricInfo,
  judged: Improvement | undefined
): Gain | undefined {
  if (!before || after === undefined) {
    return undefined;
  }
  const outcome = judged?.outcome;
  return {
    kind: isDecided(outcome) ? outcome : 'same',
    text: improvement(((more ? after - before : before - after) / before) * 100),
    verdict: judged ? verdictText(judged) : 'not judged',
  };
}

/** The baseline to begin with: the settings' own, else a recorded one, else whichever there is. */
export function defaultBaseline(baselines: Baseline[], { default_baseline }: Settings): Baseline | undefined {
  const recorded = baselines.filter(({ kind }) => kind !== 'measured');
  return recorded.find(({ name }) => name === default_baseline) ?? recorded[0] ?? baselines[0];
}
