/** The text without a value, or before the first one. */
export const DASH = '—';

/** The text where a value is not reported and will not follow. */
export const NOT_REPORTED = 'not reported';

/** Formats a number with this number of decimals and with thousands separators; a dash without a number. */
export function number(value: number | undefined, decimals = 0): string {
  if (value === undefined || !Number.isFinite(value)) {
    return DASH;
  }
  return writer(decimals).format(value);
}

/** Formats a number with the decimals that it has, at most six. */
export function plain(value: number): string {
  return number(value, Math.min(6, String(value).split('.')[1]?.length ?? 0));
}

/** To make a writer takes much longer than to write with it. */
const writers: Intl.NumberFormat[] = [];

function writer(decimals: number): Intl.NumberFormat {
  return (writers[decimals] ??= new Intl.NumberFormat('en', {
    minimumFractionDigits: decimals,
    maximumFractionDigits: decimals,
  }));
}

/** The format of a value in a unit. */
export interface Format {
  unit?: 'ms' | 's' | '%' | 'GiB' | 'MJ' | 'J' | '$';
  /** The factor from the value to the unit. */
  factor?: number;
  /** The number of decimals; 0 by default. */
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

/** Formats a value without its unit. */
export function digits(value: number | undefined, { factor = 1, decimals = 0 }: Format): string {
  const inUnit = value === undefined ? undefined : value * factor;
  return number(inUnit, typeof decimals === 'function' ? decimals(inUnit ?? 0) : decimals);
}

/** Formats a value with its unit; a dash without one. */
export function valueWithUnit(value: number | undefined, format: Format): string {
  return value === undefined || !format.unit ? digits(value, format) : `${digits(value, format)} ${format.unit}`;
}

/** Formats seconds as milliseconds. */
export function milliseconds(seconds: number | undefined): string {
  return valueWithUnit(seconds, MS);
}

/** Formats an objective, which is a setting, with the decimals that it has: by default seconds as milliseconds. */
export function objective(value: number | undefined, { unit, factor = 1 }: Format = MS): string {
  return value === undefined ? DASH : `${plain(Number((value * factor).toPrecision(12)))} ${unit ?? ''}`.trimEnd();
}

/** Formats seconds with one decimal. */
export function seconds(value: number | undefined): string {
  return valueWithUnit(value, SECONDS);
}

/** Formats a ratio from 0 to 1 as per cent. */
export function percent(ratio: number | undefined): string {
  return valueWithUnit(ratio, PERCENT);
}

/** Formats bytes as GiB. */
export function gibibytes(bytes: number | undefined): string {
  return valueWithUnit(bytes, GIB);
}

/** Formats a number with its sign; without one where it rounds to 0. By default, it has one decimal. */
export function signed(value: number, write = (size: number) => number(size, 1)): string {
  const text = write(Math.abs(value));
  return /[1-9]/.test(text) ? `${value < 0 ? '−' : '+'}${text}` : text;
}

/** Adds a word to the size of a difference, unless that rounds to 0. */
export function directed(size: string, word: string): string {
  return /[1-9]/.test(size) ? `${size} ${word}` : size;
}

/** Formats a relative change in per cent: "−31.9 %", and above 100 % "3.3 times as long". sign is for the former. */
export function relative(change: number, as: 'long' | 'much', sign = 1): string {
  return change > 100 ? `${number(1 + change / 100, 1)} times as ${as}` : `${signed(sign * change)} %`;
}

/** Formats a duration in seconds: 42 s, 3 min 5 s, 2 h 10 min. */
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
export function withoutBreaks(text: string): string {
  return text.replace(/(\d|>) (?=[^\s(])/g, '$1\u00a0');
}
