import type { LaneSnapshot } from '../../client';
import { milliseconds, number, percent } from '../../lib/format';
import { clock } from '../../lib/time';
import type { Progress, Settled } from './seen';

/** How one thing to show is recognized as seen. */
interface Rule {
  /** Why it is ticked; nothing where it was not seen. */
  seen(progress: Progress): string | undefined;
  /** What is missing while it runs. */
  missing(progress: Progress, lane: LaneSnapshot): string;
}

/** Rules by the ids of the checklist's steps. */
export type Rules = Record<string, Rule>;

/** How long a step still settles. */
export function toGo(seconds: number): string {
  return `Settling: ${number(Math.ceil(seconds))} s to go.`;
}

/** The settled steps whose keys begin so, newest first: "kv/" for a mode, "kv/off/" for a phase. */
export function newestFirst(settled: Progress['settled'], prefix: string): Settled[] {
  const of = Object.entries(settled).flatMap(([key, one]) => (key.startsWith(prefix) ? [one] : []));
  return of.sort((a, b) => Date.parse(b.at) - Date.parse(a.at));
}

/** What a settled step showed of routing. */
export function settledText(settled: Settled | undefined): string | undefined {
  return (
    settled &&
    `At ${clock(settled.at)}, ${number(settled.concurrency)} conversations: TTFT p95 ${milliseconds(settled.ttft)}, hit rate ${percent(settled.hit)}.`
  );
}
