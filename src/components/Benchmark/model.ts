import type { ChartLine, Drawing, Point } from '../Chart';
import {
  times,
  type Baseline,
  type BaselineRow,
  type Improvement,
  type LaneSnapshot,
  type Mode,
  type Settings,
  type Slider,
  type Speculation,
  type TimeKey,
} from '../../client';
import { meanTTFT, timeFigure, valueFigure, type RowFigure } from '../../lib/figures';
import { digits, relative, type Format } from '../../lib/format';
import { axisOf, compareLevels, isWithin, kindOf, levelsName, valueOf, type Level } from '../../lib/level';
import { modeName, speculationName } from '../../lib/names';
import { isDecided, verdictText } from '../../lib/outcome';
import { hasDrafts } from '../../lib/phases';
import { sloOfRow, type SLOLevel } from '../../lib/slo';

/** One recorded value, or that there is none. */
export interface Cell {
  value: number;
  format: Format;
  slo?: SLOLevel;
  hover?: string;
}

/** A row's values of one metric. A part that was not recorded is undefined. */
export interface Group {
  roundRobin?: Cell;
  kv?: Cell;
  gain?: Gain;
}

/** How much better KV-aware routing is than round-robin: same where that is not certain. */
export interface Gain {
  kind: 'better' | 'worse' | 'same';
  text: string;
  verdict: string;
}

/** One level. */
export interface Row {
  concurrency: Level;
  speculation: Speculation;
  /** Whether it is the level of the running workload. */
  current: boolean;
  groups: Group[];
}

/** The table in which a metric appears. */
export type Kind = 'latency' | 'rate';

/** One metric, which heads three columns, and has a curve. */
export interface Metric {
  key: string;
  name: string;
  kind: Kind;
  note?: string;
}

/** The whole table. */
export interface BenchmarkModel {
  metrics: Metric[];
  rows: Row[];
  /** Whether there are rows of several kinds of speculation. */
  speculations: boolean;
  /** The number of rows with all levels. */
  all: number;
  /** The names of metrics that the baseline lacks. */
  missing: string[];
}

/** The part of a table with the metrics of one kind. */
export function metricsOfKind(model: BenchmarkModel, kind: Kind): BenchmarkModel {
  const at = model.metrics.flatMap((metric, i) => (metric.kind === kind ? [i] : []));
  const rows = model.rows.map((row) => ({ ...row, groups: at.map((i) => row.groups[i]) }));
  return { ...model, metrics: at.map((i) => model.metrics[i]), rows };
}

interface MetricInfo extends RowFigure, Metric {
  /** In a table alone: nothing live compares with it, and a curve of the same name stands beside it. */
  tableOnly?: boolean;
  /** Shown only where tokens were drafted, and not reported as missing elsewhere. */
  speculative?: boolean;
}

/** A latency. The unit stands in the head. */
function latency(key: TimeKey, quantile: 'p50' | 'p95'): MetricInfo {
  const figure = timeFigure(key, quantile);
  return { ...figure, name: figure.heading, kind: 'latency' };
}

function rate(key: Parameters<typeof valueFigure>[0]): MetricInfo {
  const figure = valueFigure(key);
  return { ...figure, name: figure.heading, kind: 'rate' };
}

const tpot = latency('tpot', 'p95');

/** Where TPOT is recorded as well, the table has the derived one on hover. */
const derived: MetricInfo = {
  ...tpot,
  key: 'tpot_derived_p95',
  note: 'derived',
  value: (row) => row.tpot_derived.p95,
  tableOnly: true,
};

const metrics: MetricInfo[] = [
  { ...meanTTFT, name: meanTTFT.heading, kind: 'latency' },
  latency('ttft', 'p50'),
  latency('ttft', 'p95'),
  tpot,
  derived,
  latency('latency', 'p50'),
  latency('latency', 'p95'),
  rate('output_tokens_per_second'),
  rate('requests_per_second'),
  rate('kv_hit_ratio'),
  {
    ...rate('kv_hit_ratio'),
    key: 'error_ratio',
    name: 'Errors, %',
    value: (row) => row.error_ratio,
    isMoreBetter: false,
    tableOnly: true,
  },
  { ...rate('acceptance_rate'), speculative: true },
  { ...rate('tokens_per_step'), speculative: true },
];

interface Input {
  baseline: Baseline;
  settings: Settings;
  /** The concurrency of the running workload; undefined while none runs. */
  concurrency?: Level;
  /** All levels, not only those of the slider. */
  all: boolean;
}

/** Makes the table of one baseline: round-robin beside KV-aware routing at each level. */
export function toBenchmark({ baseline, settings, concurrency, all }: Input): BenchmarkModel {
  const drafted = hasDrafts(baseline.rows);
  const isRecorded = ({ value, speculative }: MetricInfo) =>
    (!speculative || drafted) && baseline.rows.some((row) => value(row) !== undefined);
  const recorded = metrics.filter(isRecorded);
  const shown = recorded.filter((metric) => metric !== derived || !recorded.includes(tpot));
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

/** Whether a level has every figure. Requests a second are recorded at few levels. */
function isWhole({ rows }: Pair): boolean {
  return Object.values(rows).some(({ requests_per_second }) => requests_per_second !== undefined);
}

/** Whether the slider can be set to a level. All rates are shown: the settings limit conversations alone. */
function isOnSlider(level: Level, { min, max, increment }: Slider): boolean {
  return typeof level === 'string' || (level >= min && level <= max && (level - min) % increment === 0);
}

/** One metric's curve against the levels of a kind. */
interface BenchmarkCurve extends Drawing {
  key: string;
  name: string;
  by: string;
}

/** The measurements of the running workload at its concurrency, by the keys of metrics. */
export interface LiveValues {
  concurrency: Level;
  mode: Mode;
  values: Record<string, number | undefined>;
}

/** The settled figures of this step, which are compared with recorded ones; undefined while there are none. */
export function liveValues(lane: LaneSnapshot | undefined): LiveValues | undefined {
  if (!lane?.state.running || lane.baseline.settling) {
    return undefined;
  }
  const { state, baseline } = lane;
  const all = {
    ...Object.fromEntries(
      times.flatMap((key) => (['p50', 'p95'] as const).map((p) => [`${key}_${p}`, baseline.live[key][p]]))
    ),
    [meanTTFT.key]: baseline.live.ttft.mean,
    output_tokens_per_second: baseline.live_output_tokens_per_second,
    requests_per_second: baseline.live_requests_per_second,
    kv_hit_ratio: baseline.live_kv_hit_ratio,
  };
  const values = Object.entries(all).map(([key, value]) => [key, value && Number(value.toPrecision(3))]);
  return {
    concurrency: state.step.held?.at ?? state.concurrency.target,
    mode: state.mode,
    values: Object.fromEntries(values),
  };
}

/**
 * Returns the curves of the table, one for each metric that is measured rather than derived and each kind of level, and
 * the live value as a point where the workload runs within the levels.
 */
export function toCurves(model: BenchmarkModel, settings: Settings, live?: LiveValues): BenchmarkCurve[] {
  return (['conversations', 'rate'] as const).flatMap((kind) => {
    const rows = model.rows.filter(({ concurrency }) => kindOf(concurrency) === kind);
    return rows.length > 0 ? curvesOf({ ...model, rows }, settings, live) : [];
  });
}

function curvesOf(model: BenchmarkModel, { slo }: Settings, live?: LiveValues): BenchmarkCurve[] {
  const { metrics: shown, rows, speculations } = model;
  const levels = rows.map(({ concurrency }) => concurrency);
  const by = levelsName(levels).toLowerCase();
  return metrics.flatMap((metric) => {
    const i = shown.findIndex(({ key }) => key === metric.key);
    if (i < 0 || metric.tableOnly || !rows.some(({ groups }) => groups[i].roundRobin ?? groups[i].kv)) {
      return [];
    }
    const { key, name, format } = metric;
    const lines = modes.flatMap(({ mode, cell }) =>
      Array.from(new Set(rows.map(({ speculation }) => speculation))).map((speculation): ChartLine => {
        const own = rows.filter((row) => row.speculation === speculation);
        const points = own.map(({ concurrency, groups }): Point => [valueOf(concurrency), groups[i][cell]?.value]);
        const words = speculations ? `, ${speculationName(speculation).toLowerCase()}` : '';
        return { key: `${mode} ${speculation}`, name: modeName(mode) + words, tone: mode, points, dots: true };
      })
    );
    const x = axisOf(levels);
    const objective = metric.slo && slo[metric.slo];
    return [
      { key: `${key} ${by}`, name, by, x, lines: [...lines, ...liveLine(live, key, levels)], format, slo: objective },
    ];
  });
}

function liveLine(live: LiveValues | undefined, key: string, levels: Level[]): ChartLine[] {
  const value = live?.values[key];
  if (!live || value === undefined || !isWithin(live.concurrency, levels)) {
    return [];
  }
  const { concurrency, mode } = live;
  const points: Point[] = [[valueOf(concurrency), value]];
  return [{ key: 'live', name: `${modeName(mode)}, live`, tone: mode, look: 'rings', points }];
}

const modes = [
  { mode: 'round_robin', cell: 'roundRobin' },
  { mode: 'kv', cell: 'kv' },
] as const;

interface Pair {
  concurrency: Level;
  speculation: Speculation;
  rows: Partial<Record<Mode, BaselineRow>>;
}

/**
 * Joins the rows of one level and speculation, in ascending order of levels. Of several of one mode, the newest is
 * used.
 */
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
    (a, b) => compareLevels(a.concurrency, b.concurrency) || a.speculation.localeCompare(b.speculation)
  );
}

function hover(metric: MetricInfo, row?: BaselineRow) {
  if (metric === derived) {
    return 'computed from other percentiles when recorded; not compared with live figures';
  }
  const beside = metric === tpot ? row?.tpot_derived.p95 : undefined;
  return beside === undefined ? undefined : `derived from other percentiles: ${digits(beside, metric.format)} ms`;
}

function group(
  metric: MetricInfo,
  { concurrency, speculation, rows }: Pair,
  baseline: Baseline,
  settings: Settings
): Group {
  const before = rows.round_robin && metric.value(rows.round_robin);
  const after = rows.kv && metric.value(rows.kv);
  const { format, slo } = metric;
  const cell = (value: number | undefined, row: BaselineRow | undefined): Cell | undefined =>
    value === undefined || !row
      ? undefined
      : { value, format, slo: slo && sloOfRow(row, slo, value, settings.slo), hover: hover(metric, row) };
  const found = baseline.advantages?.find((a) => a.concurrency === concurrency && a.speculation === speculation);
  return {
    roundRobin: cell(before, rows.round_robin),
    kv: cell(after, rows.kv),
    gain: gain(before, after, metric, found?.of[metric.key]),
  };
}

/**
 * Returns by how many per cent of round-robin's value KV-aware routing is better, or how many times as large its value
 * is. Lower latencies are better. The load generator decides whether it is certain.
 */
function gain(
  before: number | undefined,
  after: number | undefined,
  { isMoreBetter }: MetricInfo,
  judged: Improvement | undefined
): Gain | undefined {
  if (!before || after === undefined) {
    return undefined;
  }
  const outcome = judged?.outcome;
  return {
    kind: isDecided(outcome) ? outcome : 'same',
    text: relative(100 * (after / before - 1), isMoreBetter ? 'much' : 'long', isMoreBetter ? 1 : -1),
    verdict: judged ? verdictText(judged) : 'not judged',
  };
}

/** Returns the baseline selected at first: that of the settings, else a recorded one, else any. */
export function defaultBaseline(baselines: Baseline[], { default_baseline }: Settings): Baseline | undefined {
  const recorded = baselines.filter(({ kind }) => kind !== 'measured');
  return recorded.find(({ name }) => name === default_baseline) ?? recorded[0] ?? baselines[0];
}
