import { limits, type Slider } from '../../client';

/** The values of a slider, from min to max, and the step of its thumb. */
export interface Range {
  min: number;
  max: number;
  /** The step of its thumb: the increment, or less where the value or an end lies between two levels. */
  step: number;
}

/**
 * Returns the settings' range, extended by whole increments to concurrencies beyond it, so that the thumb has the right
 * position. It stays within one conversation and the limit.
 */
export function rangeAround(values: number[], { min, max, increment }: Slider, limit: number): Range {
  const [least, most] = [Math.min(min, ...values), Math.max(max, ...values)];
  const beyond = (distance: number) => Math.ceil(distance / increment) * increment;
  const from = Math.max(limits.concurrency.min, min - beyond(min - least));
  const to = Math.max(most, Math.min(limit, max + beyond(most - max)));
  return { min: from, max: to, step: [from, ...values].map((value) => value - min).reduce(common, increment) };
}

/** Returns the greatest common divisor. */
function common(a: number, b: number): number {
  return b === 0 ? Math.abs(a) : common(b, a % b);
}

/**
 * Returns the level for a thumb that was moved from a value: the nearest one in the direction of the move. Levels are
 * the range's ends and the settings' minimum plus whole increments.
 */
export function levelAt(moved: number, value: number, { min, increment }: Slider, range: Range): number {
  const up = moved > value;
  const level = (round: (n: number) => number, at: number) => min + round((at - min) / increment) * increment;
  const nearest = level(Math.round, moved);
  const next = up ? level(Math.floor, value) + increment : level(Math.ceil, value) - increment;
  const meant = up ? Math.max(nearest, next) : Math.min(nearest, next);
  return Math.min(range.max, Math.max(range.min, meant));
}
