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
