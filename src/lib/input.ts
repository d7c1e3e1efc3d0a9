import type { Limit } from '../client';

/** Returns the error of a text that must be a whole number within a limit; undefined without an error. */
export function wholeNumber(text: string, limit: Limit): string | undefined {
  return Number.isInteger(Number(text)) && isWithin(text, limit)
    ? undefined
    : `A whole number from ${limit.min} to ${limit.max}`;
}

/** Returns the error of a text that must be a number within a limit; undefined without an error. */
export function decimalNumber(text: string, limit: Limit): string | undefined {
  const { min, max, above } = limit;
  if (isWithin(text, limit)) {
    return undefined;
  }
  return above ? `A number above ${min}, up to ${max}` : `A number from ${min} to ${max}`;
}

function isWithin(text: string, { min, max, above }: Limit): boolean {
  const value = Number(text);
  return text.trim() !== '' && value >= min && value <= max && !(above && value === min);
}
