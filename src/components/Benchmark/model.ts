import { drawLevels, type Drawing, type LevelLine } from '../Chart';
import {
  times,
  type Baseline,
  type BaselineRow,
  type LaneSnapshot,
  type Mode,
  type Settings,
  type Slider,
  type Speculation,
} from '../../client';
import { meanTTFT, timeFigure, valueFigure, type RowFigure } from '../../lib/figures';
import { digits, relative } from '../../lib/format';
import { compareLevels, isWithin, kindOf, levelsName, type Level } from '../../lib/level';
import { modeKey, modeName, modeText } from '../../lib/names';
import { isDecided, verdictText } from '../../lib/outcome';
import { hasDrafts } from '../../lib/phases';

/** The table in which a metric appears. */
export type Kind = 'latency' | 'rate';

/** One metric, which heads three columns, and has a curve. */
export interface Metric extends RowFigure {
  kind: Kind;
  note?: string;
  /** In a table alone: nothing live compares with it, and a curve of the same name stands beside it. */
  tableOnly?: boolean;
  /** Shown only where tokens were drafted, and not reported as missing elsewhere. */
  speculative?: boolean;
}

/** The rows of one level and speculation, by their mode. */
export interface Pair {
  concurrency: Level;
  speculation: Speculation;
  rows: Partial<Record<Mode, BaselineRow>>;
}

/** Round-robin beside KV-aware routing at each level. */
export interface BenchmarkModel {
  baseline: Baseline;
  slo: Settings['slo'];
  metrics: Metric[];
  pairs: Pair[];
  /** Whether there are rows of several kinds of speculation. */
  speculations: boolean;
  /** The number of pairs with all levels. */
  all: number;
  /** The names of metrics that the baseline lacks. */
  missing: string[];
}

const latency = (figure: RowFigure): Metric => ({ ...figure, kind: 'latency' });
const rate = (figure: RowFigure): Metric => ({ ...figure, kind: 'rate' });

const tpot = latency(timeFigure('tpot', 'p95'));

/** Where TPOT is recorded as well, the table has the derived one on hover. */
const derived: Metric = {
  ...tpot,
  key: 'tpot_derived_p95',
  note: 'derived',
  value: (row) => row.tpot_derived.p95,
  tableOnly: true,
};

const metrics: Metric[] = [
  latency(meanTTFT),
  latency(timeFigure('ttft', 'p50')),
  latency(timeFigure('ttft', 'p95')),
  tpot,
  derived,
  latency(timeFigure('latency', 'p50')),
  latency(timeFigure('latency', 'p95')),
  rate(valueFigure('output_tokens_per_second')),
  rate(valueFigure('requests_per_second')),
  rate(valueFigure('kv_hit_ratio')),
  {
    ...rate(valueFigure('kv_hit_ratio')),
    key: 'error_ratio',
    heading: 'Errors, %',
    value: (row) => row.error_ratio,
    isMoreBetter: false,
    tableOnly: true,
  },
  { ...rate(valueFigure('acceptance_rate')), speculative: true },
  { ...rate(valueFigure('tokens_per_step')), speculative: true },
];

/** Makes the model of one baseline, with all levels, or those of the slider. */
export function toBenchmark(baseline: Baseline, { slider, slo }: Settings, all: boolean): BenchmarkModel {
  const drafted = hasDrafts(baseline.rows);
  const isRecorded = ({ value, speculative }: Metric) =>
    (!speculative || drafted) && baseline.rows.some((row) => value(row) !== undefined);
  const recorded = metrics.filter(isRecorded);
  const pairs = pairUp(baseline.rows);
  const whole = pairs.some(isWhole);
  return {
    baseline,
    slo,
    metrics: recorded.filter((metric) => metric !== derived || !recorded.includes(tpot)),
    pairs: all ? pairs : pairs.filter((pair) => isOnSlider(pair.concurrency, slider) && (!whole || isWhole(pair))),
    speculations: new Set(pairs.map((pair) => pair.speculation)).size > 1,
    all: pairs.length,
    missing: metrics
      .filter((metric) => !metric.tableOnly && !metric.speculative && !isRecorded(metric))
      .map(({ name }) => name),
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

/** Returns what else is said of a value. */
export function hoverText(metric: Metric, row: BaselineRow): string | undefined {
  if (metric === derived) {
    return 'computed from other percentiles when recorded; not compared with live figures';
  }
  const beside = metric === tpot ? row.tpot_derived.p95 : undefined;
  return beside === undefined ? undefined : `derived from other percentiles: ${digits(beside, metric.format)} ms`;
}

/** How much better KV-aware routing is than round-robin: same where that is not certain. */
export interface Gain {
  kind: 'better' | 'worse' | 'same';
  text: string;
  verdict: string;
}

/**
 * Returns by how many per cent of round-robin's value KV-aware routing is better, or how many times as large its value
 * is. Lower latencies are better. The load generator decides whether it is certain.
 */
export function gainOf({ key, value, isMoreBetter }: Metric, pair: Pair, { advantages }: Baseline): Gain | undefined {
  const { concurrency, speculation, rows } = pair;
  const before = rows.round_robin && value(rows.round_robin);
  const after = rows.kv && value(rows.kv);
  if (!before || after === undefined) {
    return undefined;
  }
  const judged = advantages?.find((a) => a.concurrency === concurrency && a.speculation === speculation)?.of[key];
  const outcome = judged?.outcome;
  return {
    kind: isDecided(outcome) ? outcome : 'same',
    text: relative(100 * (after / before - 1), isMoreBetter ? 'much' : 'long', isMoreBetter ? 1 : -1),
    verdict: judged ? verdictText(judged) : 'not judged',
  };
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

/** One metric's curve against the levels of a kind. */
interface BenchmarkCurve extends Drawing {
  metric: Metric;
  by: string;
}

/**
 * Returns the curves of the table, one for each metric that is measured rather than derived and each kind of level, and
 * the live value as a point where the workload runs within the levels.
 */
export function toCurves({ metrics: shown, pairs, slo }: BenchmarkModel, live?: LiveValues): BenchmarkCurve[] {
  const curves = (['conversations', 'rate'] as const).flatMap((kind) => {
    const own = pairs.filter(({ concurrency }) => kindOf(concurrency) === kind);
    const levels = own.map(({ concurrency }) => concurrency);
    const by = levelsName(levels).toLowerCase();
    return shown
      .filter(({ tableOnly }) => !tableOnly)
      .map((metric) => {
        const lines = [...linesOf(metric, own), ...liveLine(metric, levels, live)];
        return { metric, by, ...drawLevels(metric, lines, levels, slo), ceiling: undefined };
      });
  });
  return curves.filter(({ lines }) => lines.some(({ key }) => key !== LIVE));
}

/** The key of the line with the live value. */
export const LIVE = 'live';

function linesOf({ value }: Metric, pairs: Pair[]): LevelLine[] {
  const speculations = [...new Set(pairs.map(({ speculation }) => speculation))];
  return (['round_robin', 'kv'] as const).flatMap((mode) =>
    speculations.map((speculation) => ({
      key: modeKey({ mode, speculation }),
      name: modeText({ mode, speculation }),
      tone: mode,
      dots: true,
      values: pairs
        .filter((pair) => pair.speculation === speculation)
        .map(({ concurrency: level, rows: { [mode]: row } }) => ({ level, value: row && value(row) })),
    }))
  );
}

function liveLine({ key }: Metric, levels: Level[], live: LiveValues | undefined): LevelLine[] {
  if (!live || !isWithin(live.concurrency, levels)) {
    return [];
  }
  const { concurrency: level, mode, values } = live;
  const name = `${modeName(mode)}, live`;
  return [{ key: LIVE, name, tone: mode, look: 'rings', values: [{ level, value: values[key] }] }];
}

/** Returns the baseline selected at first: that of the settings, else a recorded one, else any. */
export function defaultBaseline(baselines: Baseline[], { default_baseline }: Settings): Baseline | undefined {
  const recorded = baselines.filter(({ kind }) => kind !== 'measured');
  return recorded.find(({ name }) => name === default_baseline) ?? recorded[0] ?? baselines[0];
}
