import { figures, type Column, type Comparison, type LaneSnapshot, type Settings } from '../../client';
import { figureFormats } from '../../lib/figures';
import { milliseconds, MS, number, PERCENT, span, type Format } from '../../lib/format';
import { changeText, isDecided, verdictText } from '../../lib/outcome';
import { modeKey, modeShort, routingName, servingName, speculationName } from '../../lib/names';
import { sloLevel, type SLOLevel } from '../../lib/slo';

/** The baseline of the target's own settled steps. */
export const THIS_TARGET = 'this target';

/** Why a cell has no plain value. */
type Tag =
  | 'lost'
  | 'stopped'
  | 'draining'
  | 'switching'
  | 'no data yet'
  | 'settling'
  | 'not reported'
  | 'estimated'
  | 'interpolated'
  | 'outside range'
  | 'not recorded';

/** The explanation of each tag in a legend. */
export const tagMeanings: Record<Tag, string> = {
  lost: 'the load generator does not answer',
  stopped: 'the workload is not running',
  draining: 'the workload is ending',
  switching: 'the cluster is changing its routing mode',
  'no data yet': 'no turn of this step has ended yet',
  settling: 'of too few turns to be judged',
  'not reported': 'turns have ended, but the responses do not include it',
  estimated: 'responses carry several tokens per chunk; the gap is divided among them',
  interpolated: 'interpolated between the two nearest recorded levels',
  'outside range': 'the recorded levels do not cover this concurrency',
  'not recorded': 'the baseline has no value',
};

/** How live stands to a recorded value: same where that is not decided. */
interface Standing {
  kind: 'better' | 'worse' | 'same';
  /** The difference; absent where it is withheld. */
  text?: string;
  verdict: string;
  /** The 95 % interval of the improvement, in words. */
  interval?: string;
}

/** One value of the table. */
export interface Cell {
  live: boolean;
  value?: number;
  format: Format;
  /** The ends of the 95 % interval. */
  interval?: number[];
  slo?: SLOLevel;
  /** Whether the error rate counts as a fault, by the threshold of the alert on errors. */
  failing?: boolean;
  /** The comparison of live with a recorded value. */
  difference?: Standing;
  tag?: Tag;
}

/** One metric. The cells are in the order of the heads. */
export interface Row {
  name: string;
  cells: Cell[];
}

/** One column's head. */
export interface Head {
  key: string;
  live: boolean;
  label: string;
  note: string;
}

/** One table, whole. */
export interface TableModel {
  heads: Head[];
  rows: Row[];
}

/** What is known of one of the recorded columns. */
interface Source {
  short: string;
  text: string;
}

/** The content of the panel. */
export interface Model {
  latencies: TableModel;
  rates: TableModel;
  sources: Source[];
  tags: Tag[];
}

/** The parts that a viewer has hidden. */
export interface Hidden {
  hideKV?: boolean;
  hideRoundRobin?: boolean;
}

interface Input extends Hidden {
  comparison: Comparison;
  /** Undefined while the load generator is unreachable; nothing live is shown then. */
  lane?: LaneSnapshot;
  settings: Settings;
  /** The load generator's clock. */
  time: string;
}

type Metric = 'ttft' | 'tpot' | 'itl' | 'latency';
type Rate = 'output_tokens_per_second' | 'requests_per_second' | 'kv_hit_ratio';
type Quantile = 'p50' | 'p95';

interface MetricInfo {
  key: Metric;
  name: string;
  live: Format;
  recorded: Format;
}

const RECORDED_MS: Format = { ...MS, decimals: 1 };

const metrics: MetricInfo[] = (['ttft', 'tpot', 'itl', 'latency'] as const).map((key) => ({
  key,
  name: figures[key].name.replace(' latency', ''), // the corner of the table says latency
  live: figureFormats[key],
  recorded: figureFormats[key] === MS ? RECORDED_MS : figureFormats[key],
}));

interface RateInfo {
  key?: Rate;
  name: string;
  live(input: Input): number | undefined;
  interval?(comparison: Comparison): number[] | undefined;
  failing?(value: number): boolean;
  format: Format;
}

/** The share of failing requests that counts as a fault, the same as in the alert "High error rate". */
const FAILING = 0.01;

const rates: RateInfo[] = [
  {
    key: 'output_tokens_per_second',
    name: figures.output_tokens_per_second.name,
    live: ({ comparison }) => comparison.live_output_tokens_per_second,
    interval: (comparison) => comparison.live_output_tokens_per_second_interval,
    format: figureFormats.output_tokens_per_second,
  },
  {
    key: 'requests_per_second',
    name: figures.requests_per_second.name,
    live: ({ comparison }) => comparison.live_requests_per_second,
    interval: (comparison) => comparison.live_requests_per_second_interval,
    format: figureFormats.requests_per_second,
  },
  {
    key: 'kv_hit_ratio',
    name: figures.kv_hit_ratio.name,
    live: ({ comparison }) => comparison.live_kv_hit_ratio,
    interval: (comparison) => comparison.live_kv_hit_ratio_interval,
    format: figureFormats.kv_hit_ratio,
  },
  {
    name: `${figures.error_ratio.name}, 60 s`,
    live: ({ lane }) => lane?.window.error_ratio,
    format: PERCENT,
    failing: (value) => value > FAILING,
  },
];

/** Turns a comparison into the tables' content. */
export function toModel(input: Input): Model {
  const columns = visibleColumns(input);
  const absent = absentTag(input.lane);
  const latencies = latencyTable(input, columns, absent);
  const rateModel = rateTable(input, columns, absent);
  const used = [...latencies.rows, ...rateModel.rows].flatMap((row) => row.cells.map((cell) => cell.tag));
  return {
    latencies,
    rates: rateModel,
    sources: columns.map((column) => source(column, input)),
    tags: (Object.keys(tagMeanings) as Tag[]).filter((tag) => used.includes(tag)),
  };
}

type Visible = Hidden & Pick<Input, 'comparison' | 'lane'>;

/** Omits the mode in force from this target's own results: it would be compared with itself. */
export function visibleColumns({ comparison, lane, hideKV, hideRoundRobin }: Visible): Column[] {
  return comparison.columns.filter(({ arm, mode, speculation }) => {
    const own =
      comparison.name === THIS_TARGET &&
      mode === lane?.state.mode &&
      arm === lane.state.arm &&
      speculation === lane.state.speculation;
    return !own && !(hideKV && mode === 'kv') && !(hideRoundRobin && mode === 'round_robin');
  });
}

/** Returns the tag of a missing live value. */
function absentTag(lane: LaneSnapshot | undefined): Tag {
  if (!lane) {
    return 'lost';
  }
  return lane.state.phase === 'running' ? 'no data yet' : lane.state.phase;
}

function latencyTable(input: Input, columns: Column[], absent: Tag): TableModel {
  const quantiles: Quantile[] = ['p50', 'p95'];
  return {
    heads: quantiles.flatMap((quantile) => heads(input, columns, quantile)),
    rows: metrics.map((metric) => ({
      name: metric.name,
      cells: quantiles.flatMap((quantile) => [
        liveLatency(input, metric, quantile, absent),
        ...columns.map((column) => recordedLatency(input, metric, quantile, column)),
      ]),
    })),
  };
}

/** Splits the latencies into a table for each percentile, p50 first, for a place that is too narrow for both. */
export function byPercentile({ heads, rows }: TableModel): TableModel[] {
  const half = heads.length / 2;
  return [0, half].map((from) => ({
    heads: heads.slice(from, from + half),
    rows: rows.map(({ name, cells }) => ({ name, cells: cells.slice(from, from + half) })),
  }));
}

function rateTable(input: Input, columns: Column[], absent: Tag): TableModel {
  return {
    heads: heads(input, columns),
    rows: rates.map((rate) => ({
      name: rate.name,
      cells: [liveRate(input, rate, absent), ...columns.map((column) => recordedRate(input, rate, column))],
    })),
  };
}

function heads({ comparison, lane }: Input, columns: Column[], quantile = ''): Head[] {
  const all = comparison.columns;
  const live = lane && comparison.n > 0 ? `this step, n ${number(comparison.n)}` : '';
  return [
    { key: `live ${quantile}`, live: true, label: `Live ${quantile}`.trim(), note: live },
    ...columns.map((column) => ({
      key: `${modeKey(column)} ${quantile}`,
      live: false,
      label: `${shortName(column, all)} ${quantile}`.trim(),
      note: comparison.name === THIS_TARGET ? 'measured' : 'recorded',
    })),
  ];
}

/** Returns a column's short name: its arm or mode, with the speculation where these do not distinguish the columns. */
export function shortName(column: Column, all: Column[]): string {
  const alone = all.filter((other) => servingName(other) === servingName(column)).length === 1;
  const name = column.arm ?? modeShort(column.mode);
  return alone ? name : `${name} ${speculationName(column.speculation)}`;
}

function source(column: Column, { comparison, time }: Input): Source {
  const serving = column.arm ?? routingName(column.mode);
  const routing = `${serving}, speculation ${speculationName(column.speculation).toLowerCase()}`;
  const n = column.n ? `, n ${number(column.n)}` : '';
  const measured = column.measured
    ? `, measured ${span((Date.parse(time) - Date.parse(column.measured)) / 1000)} ago`
    : '';
  const late = column.lag_seconds ? `, load generator ${milliseconds(column.lag_seconds, 1)} late` : '';
  return { short: shortName(column, comparison.columns), text: `${routing}${measured}${n}${late}` };
}

function liveLatency(input: Input, metric: MetricInfo, quantile: Quantile, absent: Tag): Cell {
  const all = input.comparison.live[metric.key];
  const value = isRunning(input) ? all[quantile] : undefined;
  if (value === undefined) {
    return { live: true, format: metric.live, tag: absent };
  }
  return {
    live: true,
    value,
    format: metric.live,
    interval: quantile === 'p50' ? all.p50_interval : all.p95_interval,
    ...(input.comparison.settling
      ? { tag: 'settling' }
      : {
          slo: slo(input.settings, metric, quantile, value, all.p95_error),
          tag: all.estimated ? 'estimated' : undefined,
        }),
  };
}

function slo(
  settings: Settings,
  metric: MetricInfo,
  quantile: Quantile,
  value?: number,
  error?: number
): SLOLevel | undefined {
  const { slo: objective, bothWays } = figures[metric.key];
  return objective && quantile === 'p95' ? sloLevel(value, settings.slo[objective], error, bothWays) : undefined;
}

function recordedLatency(input: Input, metric: MetricInfo, quantile: Quantile, column: Column): Cell {
  const found = column[metric.key][quantile];
  const live = isRunning(input) ? input.comparison.live[metric.key][quantile] : undefined;
  return {
    ...recordedCell(found, metric.recorded, live, metric.live),
    slo: slo(input.settings, metric, quantile, found.value, found.error),
  };
}

function liveRate(input: Input, rate: RateInfo, absent: Tag): Cell {
  const value = isRunning(input) ? rate.live(input) : undefined;
  return value === undefined
    ? { live: true, format: rate.format, tag: silentTag(input, rate) ?? absent }
    : {
        live: true,
        value,
        format: rate.format,
        interval: rate.interval?.(input.comparison),
        failing: rate.failing?.(value),
        tag: rate.key && input.comparison.settling ? 'settling' : undefined,
      };
}

/** After a turn has ended, only the hit rate may be missing, because an engine may not report its cached tokens. */
function silentTag(input: Input, { key }: RateInfo): Tag | undefined {
  return key === 'kv_hit_ratio' && isRunning(input) && input.comparison.n > 0 ? 'not reported' : undefined;
}

function recordedRate(input: Input, rate: RateInfo, column: Column): Cell {
  const found: Found = rate.key ? column[rate.key] : { lookup: 'not_recorded' };
  return recordedCell(found, rate.format, isRunning(input) ? rate.live(input) : undefined);
}

/** Whether there are live figures. */
function isRunning({ lane }: Input): boolean {
  return lane?.state.phase === 'running';
}

type Found = Column[Rate];

/** Returns the tag of a recorded value that is missing or qualified. */
export const lookupTags: Record<Found['lookup'], Tag | undefined> = {
  exact: undefined,
  interpolated: 'interpolated',
  outside_range: 'outside range',
  not_recorded: 'not recorded',
};

/** Formats a difference, which needs a visible live value. Those of latencies have a format of their own. */
function recordedCell(found: Found, format: Format, live: number | undefined, latency?: Format): Cell {
  const { value, improvement } = found;
  return {
    live: false,
    value,
    format,
    difference:
      live !== undefined && value !== undefined && improvement
        ? difference(improvement, live - value, latency ?? format, latency !== undefined)
        : undefined,
    tag: lookupTags[found.lookup],
  };
}

function difference(
  improvement: NonNullable<Found['improvement']>,
  change: number,
  format: Format,
  isLessBetter: boolean
): Standing {
  const { outcome, interval } = improvement;
  const [low, high] = interval?.map((end) => `${end < 0 ? '−' : '+'}${number(Math.abs(end), 1)}`) ?? [];
  return {
    kind: isDecided(outcome) ? outcome : 'same',
    text: outcome === 'withheld' ? undefined : changeText(improvement, change, format, isLessBetter),
    verdict: verdictText(improvement),
    interval: low && `Improvement, 95 % interval: ${low} to ${high} %`,
  };
}
