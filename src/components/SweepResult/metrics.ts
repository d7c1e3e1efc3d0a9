import { figures, type BaselineRow, type FigureKey, type TrialDifference } from '../../client';
import { meanTTFT, timeFigure, valueFigure, type RowFigure } from '../../lib/figures';
import { costKeys, COSTS } from '../../lib/cost';
import { digits, MS, number, PERCENT, relative, signed, valueWithUnit, type Format } from '../../lib/format';
import { hasDrafts } from '../../lib/phases';

/** A metric of a row: its name and value, with its 95 % interval where it has one. */
export interface Metric extends RowFigure {
  /** Whether it has a chart. */
  drawn?: boolean;
  /** Whether it is shown only where tokens were drafted. */
  speculative?: boolean;
}

/** The metrics of a row, in the order of tables and charts. */
export const metrics: Metric[] = [
  { ...meanTTFT, drawn: true },
  { ...timeFigure('ttft', 'p95'), drawn: true },
  { ...timeFigure('ttft', 'p50'), drawn: true },
  { ...valueFigure('output_tokens_per_second'), drawn: true },
  { ...valueFigure('kv_hit_ratio'), drawn: true },
  { ...timeFigure('tpot', 'p95'), drawn: true },
  { ...valueFigure('acceptance_rate'), speculative: true },
  { ...valueFigure('tokens_per_step'), speculative: true },
  { ...valueFigure('gpu_memory_bytes'), speculative: true },
];

/** Returns the metrics of a table of rows. */
export function metricsOf(rows: BaselineRow[]): Metric[] {
  const drafted = hasDrafts(rows);
  return metrics.filter(
    ({ speculative, value }) => !speculative || (drafted && rows.some((row) => value(row) !== undefined))
  );
}

const names: Record<string, string> = {
  ...Object.fromEntries(metrics.map(({ key, name }) => [key, name])),
  ...Object.fromEntries(costKeys.map((key) => [key, figures[key].name])),
  'ttft_p95_turn2+': 'TTFT p95 from turn 2 on',
  goodput: 'Goodput (share of turns meeting all SLOs)',
  output_tokens_per_turn: 'Output tokens per answer',
  finish_stop: 'Answers with finish reason stop',
  finish_length: 'Answers with finish reason length',
};

const formats: Record<string, Format> = {
  ttft_mean: MS,
  ttft_p95: MS,
  ttft_p50: MS,
  'ttft_p95_turn2+': MS,
  tpot_p95: MS,
  latency_p95: MS,
  kv_hit_ratio: PERCENT,
  goodput: PERCENT,
  output_tokens_per_turn: { decimals: 1 },
  finish_stop: PERCENT,
  finish_length: PERCENT,
  ...COSTS,
};

/** Returns the name of a trial's metric. */
export function metricName(key: string): string {
  return names[key] ?? key;
}

/** Whether a metric is a ratio, whose differences are in points. */
export function isShare(key: string): boolean {
  return figures[key as FigureKey]?.unit === 'ratio' || key.startsWith('finish_');
}

/** Formats a value of a trial's metric with its unit. */
export function metricValue(key: string, value: number): string {
  return formats[key] ? valueWithUnit(value, formats[key]) : `${number(value)} tokens/s`;
}

/** Formats a difference: "−12.3 %", "+4.0 points", "2.3 times as long". */
export function differenceText(key: string, value: number): string {
  const as = formats[key]?.unit === 'ms' ? 'long' : 'much';
  return isShare(key) ? `${endText(value)} points` : relative(100 * value, as);
}

/** Formats the end of an interval on a scale that has the unit: "−15.0". */
export function endText(value: number): string {
  return signed(100 * value);
}

/** Formats a round position on that scale: "−50 %"; points are named in the text beside it. */
export function tickText(key: string, value: number): string {
  return `${endText(value).replace(/\.0$/, '')}${isShare(key) ? '' : ' %'}`;
}

/** Formats the interval of a difference: "−15.0 to −9.6 %". */
export function rangeText(key: string, [low, high]: [number, number]): string {
  return `${endText(low)} to ${endText(high)} ${isShare(key) ? 'points' : '%'}`;
}

/** Formats an interval of a row's metric, without its unit. */
export function range([low, high]: [number, number], format: Format): string {
  return `${digits(low, format)}–${digits(high, format)}`;
}

/** Describes the outcome of a comparison of two arms, by their names. */
export function outcomeWords(outcome: TrialDifference['outcome'], a: string, b: string): string {
  const words = {
    running: 'not decided',
    no_difference: 'no difference of interest',
    trade_off: 'neither is better',
    unlike: 'certainly different',
    a_better: `${a} better`,
    b_better: `${b} better`,
  };
  return words[outcome];
}
