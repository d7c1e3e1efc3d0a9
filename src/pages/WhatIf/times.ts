import type { Mode, SimulationPoint, SimulationResult } from '../../client';

/** The parts of a turn, in order. */
export const PARTS = ['queued', 'prefill', 'decode'] as const;
/** A part of a turn. */
export type Part = (typeof PARTS)[number];
/** The mean time of each part, in seconds. */
export type Times = Record<Part, number>;

/** Returns the parts of a turn's time at a level under a mode; undefined where they are not computed. */
export function timesOf({ points }: SimulationResult, mode: Mode, level: number): Times | undefined {
  const figures = points.find((point) => point.mode === mode && point.concurrency === level)?.figures;
  const { queued_seconds: queued, prefill_seconds: prefill, decode_seconds: decode } = figures ?? {};
  return queued && prefill && decode ? { queued: queued.mean, prefill: prefill.mean, decode: decode.mean } : undefined;
}

/**
 * Returns the levels on both sides of a crossing: the one at which the first mode leads most in TTFT p95, and the one
 * at which the second does. Where one mode leads at every level, it returns the lowest and the highest one.
 */
export function sidesOf({ points, request: { levels = [] } }: SimulationResult, [a, b]: Mode[]): number[] {
  const ttft = (mode: Mode, level: number) =>
    points.find((point: SimulationPoint) => point.mode === mode && point.concurrency === level)?.figures.ttft_p95?.mean;
  const ratios = levels.flatMap((level) => {
    const [first, second] = [ttft(a, level), ttft(b, level)];
    return first && second ? [{ level, ratio: first / second }] : [];
  });
  if (ratios.length === 0) {
    return [];
  }
  const sorted = [...ratios].sort((x, y) => x.ratio - y.ratio);
  const [least, most] = [sorted[0], sorted[sorted.length - 1]];
  const ends = least.ratio < 1 && most.ratio > 1 ? [least, most] : [ratios[0], ratios[ratios.length - 1]];
  return [...new Set(ends.map(({ level }) => level))].sort((x, y) => x - y);
}
