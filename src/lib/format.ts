/** What stands where there is no value, or none yet. */
export const DASH = '—';

/** What is shown where a value is not reported and will not follow. */
export const NOT_REPORTED = 'not reported';

/** Writes a number with so many decimals and thousands separators; a dash without one. */
export function number(value: number | undefined, decimals = 0): string {
  if (value === undefined || !Number.isFinite(value)) {
    return DASH;
  }
  return writer(decimals).format(value);
}

/** To make a writer takes much longer than to write with it. */
const writers: Intl.NumberFormat[] = [];

function writer(decimals: number): Intl.NumberFormat {
  return (writers[decimals] ??= new Intl.NumberFormat('en', {
    minimumFractionDigits: decimals,
    maximumFractionDigits: decimals,
  }));
}

/** How a value is written as a number in a unit. */
export interface Format {
  unit?: 'ms' | 's' | '%' | 'GiB';
  /** What makes the value one in that unit. */
  factor?: number;
  /** How many decimals; none by default. */
  decimals?: number | ((inUnit: number) => number);
}

/** Seconds as milliseconds: one decimal below 100 ms, none above. */
export const MS: Format = { unit: 'ms', factor: 1000, decimals: (ms) => (ms < 100 ? 1 : 0) };
/** Seconds with one decimal. */
export const SECONDS: Format = { unit: 's', decimals: 1 };
/** Bytes as GiB with one decimal. */
export const GIB: Format = { unit: 'GiB', factor: 2 ** -30, decimals: 1 };
/** A ratio from 0 to 1 as per cent with one decimal. */
export const PERCENT: Format = { unit: '%', factor: 100, decimals: 1 };

/** Writes a value without its unit. */
export function digits(value: number | undefined, { factor = 1, decimals = 0 }: Format): string {
  const inUnit = value === undefined ? undefined : value * factor;
  return number(inUnit, typeof decimals === 'function' ? decimals(inUnit ?? 0) : decimals);
}

/** Writes a value with its unit; a dash without one. */
export function written(value: number | undefined, format: Format): string {
  return value === undefined || !format.unit ? digits(value, format) : `${digits(value, format)} ${format.unit}`;
}

/** Writes seconds as milliseconds, by default with the decimals of MS. */
export function milliseconds(seconds: number | undefined, decimals = MS.decimals): string {
  return written(seconds, { ...MS, decimals });
}

/** Writes seconds with one decimal. */
export function seconds(value: number | undefined): string {
  return written(value, SECONDS);
}

/** Writes a ratio from 0 to 1 as per cent. */
export function percent(ratio: number | undefined, decimals = 1): string {
  return written(ratio, { ...PERCENT, decimals });
}

/** Writes bytes as GiB. */
export function gibibytes(bytes: number | undefined): string {
  return written(bytes, GIB);
}

/** Writes an improvement in per cent, worse below 0, with its sign; what its one decimal does not show has none. */
export function improvement(value: number): string {
  const text = `${number(Math.abs(value), 1)} %`;
  return /[1-9]/.test(text) ? `${value < 0 ? '−' : '+'}${text}` : text;
}

/** Writes a span of seconds as a person says it: 42 s, 3 min 5 s, 2 h 10 min. */
export function span(value: number): string {
  const s = Math.max(0, Math.floor(value));
  if (s < 60) {
    return `${s} s`;
  }
  if (s < 3600) {
    return `${Math.floor(s / 60)} min ${s % 60} s`;
  }
  return `${Math.floor(s / 3600)} h ${Math.floor((s % 3600) / 60)} min`;
}

/** Keeps numbers and their units on one line. */
export function unbroken(text: string): string {
  return text.replace(/(\d|>) (?=[^\s(])/g, '$1\u00a0');
}
