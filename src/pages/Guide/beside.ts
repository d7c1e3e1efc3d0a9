import type { LaneSnapshot, LookedUp, State } from '../../client';
import { isDecided } from '../../lib/outcome';
import { columnOf, lookupWords } from './figures';
import { settledKey, type Beside, type Progress } from './seen';

/** Two values, and whether their difference exceeds chance. */
export type Compared = Beside & { shown: boolean };

/** Returns TTFT p95 of a settled lane beside round-robin's: as measured here if it was, else as recorded. */
export function besideTTFT({ settled }: Progress, { baseline, state }: LaneSnapshot, at: string): Compared | undefined {
  const concurrency = state.concurrency.target;
  const { p95: live, p95_interval: interval } = baseline.live.ttft;
  const seen = settled[roundRobin(state)];
  const own = seen?.ttft;
  if (live === undefined) {
    return undefined;
  }
  if (own !== undefined) {
    const shown = baseline.withheld === undefined && areApart(interval, seen.interval);
    return { at, concurrency, live, other: own, word: 'measured here', shown };
  }
  return besideFound(live, columnOf(baseline.columns, 'round_robin', state.speculation)?.ttft.p95, concurrency, at);
}

/** Compares with a value of the baseline. Only the load generator decides whether the difference exceeds chance. */
function besideFound(
  live: number | undefined,
  found: LookedUp | undefined,
  concurrency: number,
  at: string
): Compared | undefined {
  return live === undefined || found?.value === undefined
    ? undefined
    : {
        at,
        concurrency,
        live,
        other: found.value,
        word: lookupWords[found.lookup],
        shown: isDecided(found.improvement?.outcome),
      };
}

/** Whether two intervals do not overlap. The values then differ by more than their errors. */
function areApart(a: number[] | undefined, b: number[] | undefined): boolean {
  return a !== undefined && b !== undefined && (a[1] < b[0] || b[1] < a[0]);
}

/** Returns the share of cached prompt tokens of a settled lane beside round-robin's. */
export function besideHit({ settled }: Progress, { baseline, state }: LaneSnapshot, at: string): Beside | undefined {
  const concurrency = state.concurrency.target;
  const live = baseline.live_kv_hit_ratio;
  const own = settled[roundRobin(state)]?.hit;
  const found = columnOf(baseline.columns, 'round_robin', state.speculation)?.kv_hit_ratio;
  const other = own ?? found?.value;
  return live === undefined || other === undefined
    ? undefined
    : { at, concurrency, live, other, word: own === undefined && found ? lookupWords[found.lookup] : 'measured here' };
}

/**
 * Returns output tokens per second of a settled lane beside round-robin's. Only the load generator decides whether the
 * difference exceeds chance, because earlier measurements come without an interval.
 */
export function besideTokens({ baseline, state }: LaneSnapshot, at: string): Compared | undefined {
  const column = columnOf(baseline.columns, 'round_robin', state.speculation);
  const { live_output_tokens_per_second: live } = baseline;
  const found = besideFound(live, column?.output_tokens_per_second, state.concurrency.target, at);
  return found && { ...found, word: column?.measured === undefined ? found.word : 'measured here' };
}

/** The key of round-robin's step at the same concurrency and speculation. */
function roundRobin({ speculation, concurrency }: State): string {
  return settledKey({ mode: 'round_robin', speculation }, concurrency.target);
}
