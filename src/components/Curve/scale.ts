import { number } from '../../lib/format';

/** A place on an axis with its word. */
export interface Tick {
  at: number;
  text: string;
}

/** What an axis spans, and where it says so. */
export interface Scale {
  min: number;
  max: number;
  ticks: Tick[];
}

/** The steps between ticks that a reader counts by, in powers of ten. */
const STEPS = [1, 2, 2.5, 5, 10];

/** An axis from 0 up to the first tick that is not below the highest value, with at most so many steps. */
export function scaleFrom(highest: number, steps: number, write: (value: number) => string): Scale {
  const top = highest > 0 && Number.isFinite(highest) ? highest : 1;
  const power = 10 ** Math.floor(Math.log10(top / steps));
  const step = power * (STEPS.find((s) => s * power * steps >= top * (1 - 1e-9)) ?? 10);
  const count = Math.max(1, Math.ceil((top / step) * (1 - 1e-9)));
  const ticks = Array.from({ length: count + 1 }, (_, i) => ({ at: i * step, text: write(i * step) }));
  return { min: 0, max: count * step, ticks };
}

/** The least room between two levels' words, as a share of the axis. */
const ROOM = 0.14;

/** An axis of the levels there are, from the lowest to the highest; where they stand close, not each has its word. */
export function levels(all: number[]): Scale {
  const [low, high] = [Math.min(...all), Math.max(...all)];
  const [min, max] = low < high ? [low, high] : [low - 1, high + 1];
  const ticks = Array.from(new Set(all)).reduce<number[]>((shown, level) => {
    const before = shown.at(-1);
    return before === undefined || level - before >= ROOM * (max - min) ? [...shown, level] : shown;
  }, []);
  return { min, max, ticks: ticks.map((at) => ({ at, text: number(at) })) };
}
