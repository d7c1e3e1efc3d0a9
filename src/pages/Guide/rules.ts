import type { Comparison, LaneSnapshot } from '../../client';
import { milliseconds, number, percent } from '../../lib/format';
import { settlingText } from '../../lib/status';
import { clock } from '../../lib/time';
import type { Progress, Settled } from './seen';

/** How a step of the demonstration is recognized. */
interface Rule {
  /** Returns why it is ticked; undefined where it was not observed. */
  seen(progress: Progress): string | undefined;
  /** Returns what is missing while the workload runs. */
  missing(progress: Progress, lane: LaneSnapshot): string;
}

/** Rules by the ids of the checklist's steps. */
export type Rules = Record<string, Rule>;

/** How long a step still takes to settle. */
export function settlingTime(comparison: Comparison): string {
  return `Settling: ${settlingText(comparison)}.`;
}

/** Returns the settled steps whose keys have a prefix, newest first: "kv/" for a mode, "kv/off/" for a phase. */
export function newestFirst(settled: Progress['settled'], prefix: string): Settled[] {
  const matching = Object.entries(settled).flatMap(([key, one]) => (key.startsWith(prefix) ? [one] : []));
  return matching.sort((a, b) => Date.parse(b.at) - Date.parse(a.at));
}

/** The routing figures of a settled step. */
export function settledText(settled: Settled | undefined): string | undefined {
  return (
    settled &&
    `At ${clock(settled.at)}, ${number(settled.concurrency)} conversations: TTFT p95 ` +
      `${milliseconds(settled.ttft)}, hit rate ${percent(settled.hit)}.`
  );
}
