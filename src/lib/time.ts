/** The language that times are written in: 24 hours, and the day before the month. */
const LOCALE = 'en-GB';

/** A moment: milliseconds since 1970, or a time of the API. */
type Moment = number | string;

/** A time of day, to the minute or the second: 18:49, 18:49:18. */
export function clock(time: Moment, to: 'minute' | 'second' = 'second'): string {
  return new Date(time).toLocaleTimeString(LOCALE, { timeStyle: to === 'second' ? 'medium' : 'short' });
}

/** A date with its time of day: 20 Nov 2026, 18:49:18. */
export function dateTime(time: Moment, to: 'minute' | 'second' = 'second'): string {
  return new Date(time).toLocaleString(LOCALE, {
    dateStyle: 'medium',
    timeStyle: to === 'second' ? 'medium' : 'short',
  });
}
