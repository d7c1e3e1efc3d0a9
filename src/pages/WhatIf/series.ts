import type {
  Baseline,
  BaselineRow,
  Mode,
  Settings,
  SimulationFigure,
  SimulationFigures,
  SimulationPoint,
  SimulationResult,
  Speculation,
} from '../../client';
import { THIS_TARGET } from '../../components/Comparison/model';
import { drawLevels, type Drawing, type LevelLine } from '../../components/Chart';
import { timeFigure, valueFigure, type RowFigure } from '../../lib/figures';
import { compareLevels, isBelow, isWithin, levelText, type Level } from '../../lib/level';
import { modeName } from '../../lib/names';
import { sloLevel, type SLOLevel } from '../../lib/slo';

/** A figure with a chart: how it is read from a simulation and, where it has such, from a baseline. */
export interface FigureInfo extends Pick<RowFigure, 'name' | 'heading' | 'format' | 'slo'> {
  key: keyof SimulationFigures;
  recorded?: RowFigure['value'];
}

function ofRow(key: FigureInfo['key'], { value, ...figure }: RowFigure): FigureInfo {
  return { ...figure, key, recorded: value };
}

/** The figures with a chart, in their order. */
const figures: FigureInfo[] = [
  ofRow('ttft_p95', timeFigure('ttft', 'p95')),
  ofRow('ttft_p50', timeFigure('ttft', 'p50')),
  ofRow('tokens_per_second', valueFigure('output_tokens_per_second')),
  ofRow('hit_ratio', valueFigure('kv_hit_ratio')),
  { key: 'queue', name: 'Queue', heading: 'Queue, requests waiting', format: { decimals: 1 } },
  ofRow('tpot_p50', timeFigure('tpot', 'p50')),
];

/** The origin of a value. */
export type Source = 'simulated' | 'recorded' | 'measured';

/** One value at a level under a mode. */
export interface Value {
  source: Source;
  mode: Mode;
  concurrency: Level;
  value: number;
  /** The least and the largest over the seeds, where it is simulated. */
  band?: [low: number, high: number];
  slo?: SLOLevel;
}

/** All values of one figure. */
export interface Series {
  figure: FigureInfo;
  values: Value[];
  overloads: Overload[];
}

/** A simulated rate that a mode does not keep up with. Its latencies would say how long the simulation took. */
export interface Overload {
  mode: Mode;
  concurrency: Level;
}

/** The values that simulated ones are compared with, where they match. */
export interface Beside {
  recorded?: Baseline;
  measured?: Baseline;
}

/** The recorded table of a simulation's profile, and the measurements of the target. */
export function baselinesToCompare(baselines: Baseline[] | undefined, fitted: string | undefined): Beside {
  return {
    recorded: baselines?.find(({ name, kind }) => name === fitted && kind !== 'measured'),
    measured: baselines?.find(({ name }) => name === THIS_TARGET),
  };
}

/** Returns the values of each figure at the requested levels. */
export function seriesOf(result: SimulationResult, beside: Beside, slo: Settings['slo'] | undefined): Series[] {
  const { levels = [], modes = [], speculation = 'not_recorded' } = result.request;
  const fits = (row: BaselineRow) =>
    isWithin(row.concurrency, levels) && modes.includes(row.mode) && served(row.speculation) === served(speculation);
  const rows = {
    recorded: newest(beside.recorded?.rows.filter(fits) ?? []),
    measured: newest(beside.measured?.rows.filter(fits) ?? []),
  };
  const overloads = result.points.filter(({ overloaded }) => overloaded);
  return figures.map((figure) => {
    const level = (value: number) => figure.slo && sloLevel(value, slo?.[figure.slo]);
    const values = [
      ...result.points.flatMap((point) => simulated(point, figure.key)),
      ...(['recorded', 'measured'] as const).flatMap((source) => baselineValues(rows[source], source, figure)),
    ];
    return { figure, values: values.map((value) => ({ ...value, slo: level(value.value) })), overloads };
  });
}

/** A row without recorded speculation counts as one without speculation. */
function served(speculation: Speculation): Speculation {
  return speculation === 'not_recorded' ? 'off' : speculation;
}

/** Returns the newest of several rows of a level under one mode. */
function newest(rows: BaselineRow[]): BaselineRow[] {
  const found = new Map<string, BaselineRow>();
  for (const row of rows) {
    const key = `${row.concurrency} ${row.mode}`;
    const before = found.get(key);
    if (!before || (before.measured ?? '') <= (row.measured ?? '')) {
      found.set(key, row);
    }
  }
  return [...found.values()].sort((a, b) => compareLevels(a.concurrency, b.concurrency));
}

function simulated({ concurrency, mode, figures: all }: SimulationPoint, key: FigureInfo['key']): Value[] {
  const found: SimulationFigure | undefined = all[key];
  return found ? [{ source: 'simulated', mode, concurrency, value: found.mean, band: [found.low, found.high] }] : [];
}

function baselineValues(rows: BaselineRow[], source: Source, { recorded }: FigureInfo): Value[] {
  return rows.flatMap((row) => {
    const value = recorded?.(row);
    return value === undefined ? [] : [{ source, mode: row.mode, concurrency: row.concurrency, value }];
  });
}

const looks = { simulated: 'solid', recorded: 'dashed', measured: 'rings' } as const;

/** Returns the chart of a figure over the requested levels. */
export function draw({ figure, values }: Series, levels: Level[], slo: Settings['slo'] | undefined): Drawing {
  const lines = new Map<string, LevelLine>();
  for (const { source, mode: tone, concurrency: level, value, band } of values) {
    const name = `${modeName(tone)} ${source}`;
    if (!lines.has(name)) {
      lines.set(name, { key: name, name, tone, look: looks[source], dots: source === 'simulated', values: [] });
    }
    lines.get(name)?.values.push({ level, value, band });
  }
  return drawLevels(figure, [...lines.values()], levels, slo);
}

/**
 * Returns the highest level such that it and every lower one of a source and mode meet the objective. It is 0 where the
 * lowest misses it or is overloaded, and undefined without values.
 */
export function holdsUpTo({ values, overloads }: Series, source: Source, mode: Mode): Level | undefined {
  const own = values.filter((value) => value.source === source && value.mode === mode && value.slo !== undefined);
  const limits = [
    ...own.filter(({ slo }) => slo === 'missed'),
    ...overloads.filter((one) => source === 'simulated' && one.mode === mode),
  ];
  const met = own.filter(({ concurrency }) => limits.every((limit) => isBelow(concurrency, limit.concurrency)));
  return own.length + limits.length === 0 ? undefined : (met.at(-1)?.concurrency ?? 0);
}

/** Says which modes do not keep up with which rates: "Round-robin does not keep up with 4/s and 8/s". */
export function overloadWords({ overloads }: Series, modes: Mode[]): string[] {
  return modes.flatMap((mode) => {
    const rates = overloads.filter((one) => one.mode === mode).map(({ concurrency }) => levelText(concurrency));
    return rates.length > 0 ? [`${modeName(mode)} does not keep up with ${rates.join(' and ')}.`] : [];
  });
}

/** Returns the modes of a result in the order of display. The reference mode is first. */
export function modesOf({ request: { modes = [] } }: SimulationResult): Mode[] {
  const order: Mode[] = ['round_robin', 'least_loaded', 'kv'];
  return order.filter((mode) => modes.includes(mode));
}
