import { number, type Format } from '../../lib/format';

/** A position on an axis with its label. */
interface Tick {
  at: number;
  text: string;
}

/** The range of an axis and its ticks. */
export interface Axis {
  min: number;
  max: number;
  ticks: Tick[];
}

/** The steps between ticks, as factors of powers of ten. */
const STEPS = [1, 2, 2.5, 5, 10];

/**
 * Returns an axis from the last tick that is not above the floor, which is 0 by default, to the first one that is not
 * below the highest value, with about this number of steps. A step is never finer than the format of the values: 1 for
 * counts.
 */
export function axisFrom(highest: number, steps: number, format: Format, floor = 0): Axis {
  const { factor = 1 } = format;
  const low = floor * factor;
  const top = highest > floor && Number.isFinite(highest) ? highest * factor : low + factor;
  const step = stepOf((top - low) / steps, finest(format));
  const first = Math.floor((low / step) * (1 + 1e-9));
  const count = Math.max(1, Math.ceil((top / step) * (1 - 1e-9)) - first);
  const at = Array.from({ length: count + 1 }, (_, i) => (first + i) * step);
  return {
    min: at[0] / factor,
    max: at[count] / factor,
    ticks: at.map((inUnit) => ({ at: inUnit / factor, text: tickText(inUnit, step, format) })),
  };
}

/** Returns the least step that is not below a value, and a multiple of the finest. */
function stepOf(least: number, finest: number): number {
  const power = 10 ** Math.floor(Math.log10(least));
  const fits = (step: number) => step >= least * (1 - 1e-9) && isWhole(step / finest);
  return [power, 10 * power].flatMap((p) => STEPS.map((s) => s * p)).find(fits) ?? finest;
}

function finest({ decimals = 0 }: Format): number {
  return 10 ** -(typeof decimals === 'function' ? decimals(0) : decimals);
}

function tickText(inUnit: number, step: number, { unit }: Format): string {
  const decimals = [0, 1, 2, 3].find((d) => isWhole(step * 10 ** d)) ?? 3;
  const text = number(inUnit, decimals);
  return unit ? `${text} ${unit}` : text;
}

function isWhole(value: number): boolean {
  return Math.abs(value - Math.round(value)) < 1e-6;
}

/** Returns the ascending levels that are at least this far apart. */
export function apart(levels: number[], least: number): number[] {
  return levels.reduce<number[]>((shown, level) => {
    const before = shown.at(-1);
    return before === undefined || level - before >= least ? [...shown, level] : shown;
  }, []);
}
