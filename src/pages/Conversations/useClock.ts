import { useLive } from '../../client';
import { lastKnown } from '../../lib/known';
import { clock, dateTime } from '../../lib/time';
import { LANE } from '../lane';

/** Returns the load generator's clock, in milliseconds since 1970, updated each second. It stops during a loss. */
export function useClock(): number | undefined {
  const time = lastKnown(useLive(LANE), LANE)?.time;
  return time === undefined ? undefined : Date.parse(time);
}

/** Returns the time since a moment by that clock, in seconds; undefined while the clock is not known. */
export function durationOf({ started, ended }: { started: string; ended?: string }, now?: number): number | undefined {
  const end = ended === undefined ? now : Date.parse(ended);
  return end === undefined ? undefined : Math.max(0, (end - Date.parse(started)) / 1000);
}

/** Formats a moment by the browser's clock: 18:49:18, or 20 Nov 2026, 18:49 where that is not today. */
export function timeOfDay(time: string): string {
  return new Date(time).toDateString() === new Date().toDateString() ? clock(time) : dateTime(time, 'minute');
}
