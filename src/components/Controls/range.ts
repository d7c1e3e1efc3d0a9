import { limits, type LaneSnapshot, type Limit, type Settings, type Slider } from '../../client';
import { levelOf, rateLimit, type Level, type LevelKind } from '../../lib/level';

/** The usual rates, in conversations per second. The API has no settings of them. */
const RATES: Slider = { min: 0.5, max: 50, increment: 0.5 };

/** The range of the slider for a kind of level, and the limit of typed values. */
export function boundsOf(kind: LevelKind, settings: Pick<Settings, 'slider' | 'max_concurrency'>) {
  return kind === 'rate'
    ? { slider: RATES, limit: rateLimit }
    : { slider: settings.slider, limit: { ...limits.concurrency, max: settings.max_concurrency } };
}

/** Returns the level of a kind, on the slider, that is about as much load as there is now. */
export function equivalentLevel(kind: LevelKind, { state, window }: LaneSnapshot, settings: Settings): Level {
  const { min, max, increment } = boundsOf(kind, settings).slider;
  const { turns } = state.shape;
  const now = kind === 'rate' ? window.requests_per_second / ((turns.min + turns.max) / 2) : state.concurrency.actual;
  const near = min + Math.round((now - min) / increment) * increment;
  return levelOf(kind, Math.min(max, Math.max(min, near)));
}

/** The values of a slider, from min to max, and the step of its thumb. */
export interface Range {
  min: number;
  max: number;
  /** The step of its thumb: the increment, or less where the value or an end lies between two levels. */
  step: number;
}

/**
 * Returns a slider's range, extended by whole increments to values beyond it, so that the thumb has the right position.
 * It stays within the limit.
 */
export function rangeAround(values: number[], { min, max, increment }: Slider, limit: Limit): Range {
  const [least, most] = [Math.min(min, ...values), Math.max(max, ...values)];
  const beyond = (distance: number) => Math.ceil(distance / increment) * increment;
  const from = Math.max(limit.min, min - beyond(min - least));
  const to = Math.max(most, Math.min(limit.max, max + beyond(most - max)));
  const hundredths = [increment, ...[from, ...values].map((value) => value - min)].map((n) => Math.round(100 * n));
  return { min: from, max: to, step: hundredths.reduce(common) / 100 };
}

/** Returns the greatest common divisor. */
function common(a: number, b: number): number {
  return b === 0 ? Math.abs(a) : common(b, a % b);
}

/**
 * Returns the value for a thumb that was moved from another one: the nearest one in the direction of the move. Values
 * are the range's ends and the slider's minimum plus whole increments.
 */
export function levelAt(moved: number, value: number, { min, increment }: Slider, range: Range): number {
  const up = moved > value;
  const level = (round: (n: number) => number, at: number) => min + round((at - min) / increment) * increment;
  const nearest = level(Math.round, moved);
  const next = up ? level(Math.floor, value) + increment : level(Math.ceil, value) - increment;
  const meant = up ? Math.max(nearest, next) : Math.min(nearest, next);
  return Math.min(range.max, Math.max(range.min, meant));
}
