import { limits, type Slider } from '../../client';

/** What a slider can be set to: from min to max, and what it moves by at the least. */
export interface Range {
  min: number;
  max: number;
  /** What its thumb moves by: the increment, or less where the value or an end lies between two levels. */
  step: number;
}

/**
 * The settings' range, extended by whole increments to hold concurrencies that are beyond it,
 * so that the thumb stands where the concurrency is. Not below one conversation, nor above the limit.
 */
export function rangeAround(values: number[], { min, max, increment }: Slider, limit: number): Range {
  const [least, most] = [Math.min(min, ...values), Math.max(max, ...values)];
  const beyond = (distance: number) => Math.ceil(distance / increment) * increment;
  const from = Math.max(limits.concurrency.min, min - beyond(min - least));
  const to = Math.max(most, Math.min(limit, max + beyond(most - max)));
  return { min: from, max: to, step: [from, ...values].map((value) => value - min).reduce(common, increment) };
}

/** The greatest whole number that divides both. */
function common(a: number, b: number): number {
  return b === 0 ? Math.abs(a) : common(b, a % b);
}

/**
 * The level that is meant where the thumb is moved from a value: the nearest one, but
 * never back. Levels are the range's ends and what whole increments lead to from the settings' least.
 */
export function levelAt(moved: number, value: number, { min, increment }: Slider, range: Range): number {
  const up = moved > value;
  const level = (round: (n: number) => number, at: number) => min + round((at - min) / increment) * increment;
  const nearest = level(Math.round, moved);
  const next = up ? level(Math.floor, value) + increment : level(Math.ceil, value) - increment;
  const meant = up ? Math.max(nearest, next) : Math.min(nearest, next);
  return Math.min(range.max, Math.max(range.min, meant));
}
