import type { Limit } from '../client';

/** What is wrong with a text that is to be a whole number within a limit; undefined where nothing is. */
export function wholeNumber(text: string, limit: Limit): string | undefined {
  return Number.isInteger(Number(text)) && isWithin(text, limit)
    ? undefined
    : `A whole number from ${limit.min} to ${limit.max}`;
}

/** What is wrong with a text that is to be a number within a limit. */
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
