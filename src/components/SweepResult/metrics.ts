import type { BaselineRow } from '../../client';
import { digits, GIB, MS, number, PERCENT, written, type Format } from '../../lib/format';
import { hasDrafts } from '../../lib/phases';

/** A metric of a row: how it is called and read, with its 95 % interval where it has one. */
export interface Metric {
  key: string;
  name: string;
  /** The unit of the digits, as a column's heading or an axis says it. */
  unit: string;
  format: Format;
  value(row: BaselineRow): number | undefined;
  interval(row: BaselineRow): [low: number, high: number] | undefined;
  /** The objective that it is judged by. */
  slo?: 'ttft' | 'tpot';
  /** Whether it has a chart. */
  drawn?: boolean;
  /** Whether it stands only where something was drafted. */
  speculative?: boolean;
}

const ms: Format = { ...MS, unit: undefined };

/** The metrics of a row, in the order of tables and charts. */
export const metrics: Metric[] = [
  {
    key: 'ttft_p95',
    name: 'TTFT p95',
    unit: 'ms',
    format: ms,
    value: (row) => row.ttft.p95,
    interval: (row) => row.intervals?.ttft.p95,
    slo: 'ttft',
    drawn: true,
  },
  {
    key: 'ttft_p50',
    name: 'TTFT p50',
    unit: 'ms',
    format: ms,
    value: (row) => row.ttft.p50,
    interval: (row) => row.intervals?.ttft.p50,
    drawn: true,
  },
  {
    key: 'output_tokens_per_second',
    name: 'Throughput',
    unit: 'output tokens/s',
    format: {},
    value: (row) => row.output_tokens_per_second,
    interval: (row) => row.intervals?.output_tokens_per_second,
    drawn: true,
  },
  {
    key: 'kv_hit_ratio',
    name: 'KV cache hit rate',
    unit: '%',
    format: { ...PERCENT, unit: undefined },
    value: (row) => row.kv_hit_ratio,
    interval: (row) => row.intervals?.kv_hit_ratio,
    drawn: true,
  },
  {
    key: 'tpot_p95',
    name: 'TPOT p95',
    unit: 'ms',
    format: ms,
    value: (row) => row.tpot.p95,
    interval: (row) => row.intervals?.tpot.p95,
    slo: 'tpot',
    drawn: true,
  },
  {
    key: 'acceptance_rate',
    name: 'Acceptance rate',
    unit: '%',
    format: { ...PERCENT, unit: undefined },
    value: (row) => row.acceptance_rate,
    interval: (row) => row.intervals?.acceptance_rate,
    speculative: true,
  },
  {
    key: 'tokens_per_step',
    name: 'Tokens per step',
    unit: 'tokens',
    format: { decimals: 2 },
    value: (row) => row.tokens_per_step,
    interval: (row) => row.intervals?.tokens_per_step,
    speculative: true,
  },
  {
    key: 'gpu_memory_bytes',
    name: 'Memory of a GPU',
    unit: 'GiB',
    format: { ...GIB, unit: undefined },
    value: (row) => row.gpu_memory_bytes,
    interval: (row) => row.intervals?.gpu_memory_bytes,
    speculative: true,
  },
];

/** The metrics of a table of rows. */
export function metricsOf(rows: BaselineRow[]): Metric[] {
  const drafted = hasDrafts(rows);
  return metrics.filter(
    ({ speculative, value }) => !speculative || (drafted && rows.some((row) => value(row) !== undefined))
  );
}

const names: Record<string, string> = {
  ...Object.fromEntries(metrics.map(({ key, name }) => [key, name])),
  ttft_mean: 'TTFT mean',
  'ttft_p95_turn2+': 'TTFT p95 from turn 2 on',
  goodput: 'Goodput (share of turns meeting all SLOs)',
};

const formats: Record<string, Format> = {
  ttft_mean: MS,
  ttft_p95: MS,
  ttft_p50: MS,
  'ttft_p95_turn2+': MS,
  tpot_p95: MS,
  kv_hit_ratio: PERCENT,
  goodput: PERCENT,
};

/** A metric of a trial as a person says it. */
export function metricName(key: string): string {
  return names[key] ?? key;
}

/** Whether a metric is a share, whose differences are points. */
export function isShare(key: string): boolean {
  return key === 'kv_hit_ratio' || key === 'goodput';
}

/** A value of a trial's metric with its unit. */
export function metricValue(key: string, value: number): string {
  return formats[key] ? written(value, formats[key]) : `${number(value)} tokens/s`;
}

/** A difference with its sign: "−12.3 %", "+4.0 points". */
export function differenceText(key: string, value: number): string {
  return `${signed(value)} ${isShare(key) ? 'points' : '%'}`;
}

/** The end of an interval on a scale that has the unit: "−15.0". */
export function endText(value: number): string {
  return signed(value);
}

/** A round place on that scale: "−50 %"; points are named in the words beside it. */
export function tickText(key: string, value: number): string {
  return `${signed(value).replace(/\.0$/, '')}${isShare(key) ? '' : ' %'}`;
}

/** The interval of a difference: "−15.0 to −9.6 %". */
export function rangeText(key: string, [low, high]: [number, number]): string {
  return `${signed(low)} to ${signed(high)} ${isShare(key) ? 'points' : '%'}`;
}

function signed(value: number): string {
  const text = number(Math.abs(100 * value), 1);
  const sign = text === '0.0' ? '' : value > 0 ? '+' : '−';
  return sign + text;
}

/** An interval of a row's metric, without its unit. */
export function range([low, high]: [number, number], format: Format): string {
  return `${digits(low, format)}–${digits(high, format)}`;
}
