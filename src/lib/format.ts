/** What stands where there is no value. */
export const DASH = '—';

/** Writes a number with so many decimals and thousands separators; a dash without one. */
export function number(value: number | undefined, decimals = 0): string {
  if (value === undefined || !Number.isFinite(value)) {
    return DASH;
  }
  return value.toLocaleString('en', { minimumFractionDigits: decimals, maximumFractionDigits: decimals });
}

/** Writes seconds as milliseconds: one decimal below 100 ms and for recorded values, none above. */
export function milliseconds(seconds: number | undefined, decimals?: number): string {
  if (seconds === undefined) {
    return DASH;
  }
  const ms = seconds * 1000;
  return `${number(ms, decimals ?? (ms < 100 ? 1 : 0))} ms`;
}

/** Writes seconds with one decimal. */
export function seconds(value: number | undefined): string {
  return value === undefined ? DASH : `${number(value, 1)} s`;
}

/** Writes a ratio from 0 to 1 as per cent. */
export function percent(ratio: number | undefined, decimals = 1): string {
  return ratio === undefined ? DASH : `${number(ratio * 100, decimals)} %`;
}

/** Writes bytes as GiB. */
export function gibibytes(bytes: number | undefined): string {
  return bytes === undefined ? DASH : `${number(bytes / 2 ** 30, 1)} GiB`;
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
