import { figures, times, type BaselineRow, type FigureKey, type TimeKey } from '../client';
import { GIB, MS, PERCENT, type Format } from './format';

type ValueKey =
  | 'output_tokens_per_second'
  | 'requests_per_second'
  | 'kv_hit_ratio'
  | 'acceptance_rate'
  | 'tokens_per_step'
  | 'gpu_memory_bytes';
type Quantile = 'p50' | 'p95';

/** How the values of recorded figures are written. */
export const figureFormats: Record<TimeKey | ValueKey, Format> = {
  ...(Object.fromEntries(times.map((key) => [key, MS])) as Record<TimeKey, Format>),
  output_tokens_per_second: {},
  requests_per_second: { decimals: 2 },
  kv_hit_ratio: PERCENT,
  acceptance_rate: PERCENT,
  tokens_per_step: { decimals: 2 },
  gpu_memory_bytes: GIB,
};

/** A figure of a recorded row: of a time, one of its percentiles. */
export interface RowFigure {
  /** As the API names it: "ttft_p95". */
  key: string;
  name: string;
  /** The name with the unit of its digits. */
  heading: string;
  /** How it is written below its heading. */
  format: Format;
  value(row: BaselineRow): number | undefined;
  /** The 95 % interval, where it has one. */
  interval(row: BaselineRow): [low: number, high: number] | undefined;
  /** The objective that it is judged by. */
  slo?: 'ttft' | 'tpot';
  isMoreBetter: boolean;
}

/** A percentile of a time of a row. */
export function timeFigure(key: TimeKey, quantile: Quantile): RowFigure {
  return {
    ...displayOf(key, `${key}_${quantile}`, percentileName(key, quantile)),
    value: (row) => row[key][quantile],
    interval: (row) => row.intervals?.[key][quantile],
    slo: quantile === 'p95' ? figures[key].slo : undefined,
  };
}

/** The mean TTFT of a row. */
export const meanTTFT: RowFigure = {
  ...displayOf('ttft', 'ttft_mean', `${figures.ttft.name} mean`),
  value: (row) => row.ttft_mean,
  interval: (row) => row.intervals?.ttft_mean,
};

/** A rate, a share or an amount of a row. */
export function valueFigure(key: ValueKey): RowFigure {
  return {
    ...displayOf(key, key, figures[key].name),
    value: (row) => row[key],
    interval: (row) => row.intervals?.[key],
  };
}

function displayOf(figure: TimeKey | ValueKey, key: string, name: string) {
  const { unit, ...format } = figureFormats[figure];
  return {
    key,
    name,
    heading: unit ? `${name}, ${unit}` : name,
    format,
    isMoreBetter: figures[figure].better === 'higher',
  };
}

/** A percentile of a figure: "TTFT p95". */
export function percentileName(key: FigureKey, quantile: Quantile): string {
  return `${figures[key].name} ${quantile}`;
}

/** A figure's name within a sentence: abbreviations keep their letters. */
export function inSentence(key: FigureKey): string {
  const { name } = figures[key];
  return /^[A-Z]{2}/.test(name) ? name : name.charAt(0).toLowerCase() + name.slice(1);
}
