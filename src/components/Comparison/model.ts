import {
  figures,
  times,
  type Column,
  type Comparison,
  type LaneSnapshot,
  type Settings,
  type TimeKey,
} from '../../client';
import { figureFormats, meanTTFT as meanOfRow } from '../../lib/figures';
import { milliseconds, number, PERCENT, signed, span, type Format } from '../../lib/format';
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
  | 'from the cluster'
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
  estimated: 'the server does not count the tokens of a chunk; the gap is divided by their mean, or is that of a chunk',
  'from the cluster': 'over the last 60 s, by the metrics of the frontend or the engines',
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
  time: string;
}

export type Rate = 'output_tokens_per_second' | 'requests_per_second' | 'kv_hit_ratio';
type Quantile = 'p50' | 'p95';
type Found = Column[Rate];

/** The percentiles of each. */
export const quantiles: Quantile[] = ['p50', 'p95'];

/** A live value, and what is known of it. */
interface LiveValue {
  value?: number;
  interval?: number[];
  /** The load generator's own error. */
  error?: number;
  tag?: Tag;
}

/** A figure, live and recorded. */
export interface Figure {
  name: string;
  format: Format;
  live(input: Pick<Input, 'comparison' | 'lane'>): LiveValue;
  /** Absent where no baseline has it. */
  recorded?(column: Column): Found;
  slo?: 'ttft' | 'tpot';
  bothWays?: boolean;
  isLessBetter?: boolean;
  failing?(value: number): boolean;
}

/** Returns a percentile of a latency. */
export function latency(key: TimeKey, quantile: Quantile): Figure {
  const { name, slo, bothWays } = figures[key];
  return {
    name: name.replace(' latency', ''), // the corner of the table says latency
    format: figureFormats[key],
    live: ({ comparison }) => {
      const all = comparison.live[key];
      return {
        value: all[quantile],
        interval: quantile === 'p50' ? all.p50_interval : all.p95_interval,
        error: quantile === 'p50' ? all.p50_error : all.p95_error,
        tag: all.estimated ? 'estimated' : undefined,
      };
    },
    recorded: (column) => column[key][quantile],
    slo: quantile === 'p95' ? slo : undefined,
    bothWays,
    isLessBetter: true,
  };
}

/** Returns a rate, or the share of cached tokens. */
export function rate(key: Rate): Figure {
  return {
    name: figures[key].name,
    format: figureFormats[key],
    live: ({ comparison }) => ({ value: comparison[`live_${key}`], interval: comparison[`live_${key}_interval`] }),
    recorded: (column) => column[key],
  };
}

/** The mean TTFT, which decides. */
export const meanTTFT: Figure = {
  name: meanOfRow.name,
  format: figureFormats.ttft,
  live: ({ comparison: { live } }) => ({
    value: live.ttft.mean,
    interval: live.ttft.mean_interval,
    error: live.ttft.mean_error,
  }),
  recorded: ({ ttft_mean: found = { lookup: 'not_recorded' } }) => found,
  isLessBetter: true,
};

/** The share of failing requests that counts as a fault, the same as in the alert "High error rate". */
const FAILING = 0.01;

/** The share of cached tokens. Where responses do not have it, the cluster's metrics of the last 60 s may. */
const hitRate: Figure = {
  ...rate('kv_hit_ratio'),
  live: (input) => {
    const ofStep = rate('kv_hit_ratio').live(input);
    const { hit_ratio: value, source } = input.lane?.kv ?? {};
    return ofStep.value === undefined && source !== 'usage' ? { value, tag: 'from the cluster' } : ofStep;
  },
};

const rates: Figure[] = [
  meanTTFT,
  rate('output_tokens_per_second'),
  rate('requests_per_second'),
  hitRate,
  {
    name: `${figures.error_ratio.name}, 60 s`,
    live: ({ lane }) => ({ value: lane?.window.error_ratio }),
    format: PERCENT,
    failing: (value) => value > FAILING,
  },
];

/** Turns a comparison into the tables' content. */
export function toModel(input: Input): Model {
  const columns = visibleColumns(input);
  const latencies = tableOf(
    input,
    columns,
    times.map((time) => quantiles.map((quantile) => latency(time, quantile))),
    quantiles
  );
  const rateModel = tableOf(
    input,
    columns,
    rates.map((figure) => [figure])
  );
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

/** Makes a table with a row for each list of figures, with a column of live values for each figure of a list. */
function tableOf(input: Input, columns: Column[], rows: Figure[][], of: string[] = ['']): TableModel {
  return {
    heads: of.flatMap((word) => heads(input, columns, word)),
    rows: rows.map((row) => ({
      name: row[0].name,
      cells: row.flatMap((figure) => [
        liveCell(input, figure),
        ...columns.map((column) => recordedCell(input, figure, column)),
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

function heads({ comparison, lane }: Input, columns: Column[], quantile: string): Head[] {
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
  const late = column.lag_seconds ? `, load generator ${milliseconds(column.lag_seconds)} late` : '';
  return { short: shortName(column, comparison.columns), text: `${routing}${measured}${n}${late}` };
}

function liveCell(input: Input, figure: Figure): Cell {
  const { format, failing, recorded } = figure;
  const { value, interval, error, tag } = isRunning(input) ? figure.live(input) : {};
  if (value === undefined) {
    return { live: true, format, tag: absentTag(input, figure) };
  }
  const isSettling = input.comparison.settling && recorded !== undefined;
  return {
    live: true,
    value,
    format,
    interval,
    failing: failing?.(value),
    slo: isSettling ? undefined : levelOf(input, figure, value, error, input.lane?.window.error_ratio),
    tag: isSettling ? 'settling' : tag,
  };
}

/** Returns the tag of a missing live value. An engine may not report the cached tokens of a turn that has ended. */
function absentTag({ comparison, lane }: Input, figure: Figure): Tag {
  if (!lane) {
    return 'lost';
  }
  if (lane.state.phase !== 'running') {
    return lane.state.phase;
  }
  return figure === hitRate && comparison.n > 0 ? 'not reported' : 'no data yet';
}

function levelOf(
  { settings }: Input,
  { slo, bothWays }: Figure,
  value?: number,
  error?: number,
  errorRatio?: number
): SLOLevel | undefined {
  return slo && sloLevel(value, settings.slo[slo], error, bothWays, errorRatio);
}

/** Formats a recorded value, with its difference where live has a value, too. */
function recordedCell(input: Input, figure: Figure, column: Column): Cell {
  const { format, recorded, isLessBetter = false } = figure;
  const found: Found = recorded ? recorded(column) : { lookup: 'not_recorded' };
  const { value, improvement, error } = found;
  const live = isRunning(input) ? figure.live(input).value : undefined;
  return {
    live: false,
    value,
    format,
    slo: levelOf(input, figure, value, error),
    difference:
      live !== undefined && value !== undefined && improvement
        ? difference(improvement, live - value, format, isLessBetter)
        : undefined,
    tag: lookupTags[found.lookup],
  };
}

/** Whether there are live figures. */
function isRunning({ lane }: Input): boolean {
  return lane?.state.phase === 'running';
}

/** Returns the tag of a recorded value that is missing or qualified. */
export const lookupTags: Record<Found['lookup'], Tag | undefined> = {
  exact: undefined,
  interpolated: 'interpolated',
  outside_range: 'outside range',
  not_recorded: 'not recorded',
};

function difference(
  improvement: NonNullable<Found['improvement']>,
  change: number,
  format: Format,
  isLessBetter: boolean
): Standing {
  const { outcome, interval } = improvement;
  const [low, high] = interval?.map((end) => signed(end)) ?? [];
  return {
    kind: isDecided(outcome) ? outcome : 'same',
    text: outcome === 'withheld' ? undefined : changeText(improvement, change, format, isLessBetter),
    verdict: verdictText(improvement),
    interval: low && `Improvement, 95 % interval: ${low} to ${high} %`,
  };
}
