/** The locale of times: 24 hours, and the day before the month. */
const LOCALE = 'en-GB';

/** A moment: milliseconds since 1970, or a time of the API. */
type Moment = number | string;

/** To make a format takes much longer than to write with it. */
const formats = {
  minute: {
    clock: new Intl.DateTimeFormat(LOCALE, { timeStyle: 'short' }),
    dateTime: new Intl.DateTimeFormat(LOCALE, { dateStyle: 'medium', timeStyle: 'short' }),
  },
  second: {
    clock: new Intl.DateTimeFormat(LOCALE, { timeStyle: 'medium' }),
    dateTime: new Intl.DateTimeFormat(LOCALE, { dateStyle: 'medium', timeStyle: 'medium' }),
  },
};

/** A time of day, to the minute or the second: 18:49, 18:49:18. */
export function clock(time: Moment, to: 'minute' | 'second' = 'second'): string {
  return written(formats[to].clock, time);
}

/** Formats a date with its time of day: 20 Nov 2026, 18:49:18. */
export function dateTime(time: Moment, to: 'minute' | 'second' = 'second'): string {
  return written(formats[to].dateTime, time);
}

/** Formats a day, without its year: 20 Nov. */
export function day(time: Moment): string {
  return written(DAY, time);
}

const DAY = new Intl.DateTimeFormat(LOCALE, { day: 'numeric', month: 'short' });

function written(format: Intl.DateTimeFormat, time: Moment): string {
  const date = new Date(time);
  return Number.isNaN(date.getTime()) ? String(date) : format.format(date); // it throws on what is no time
}
