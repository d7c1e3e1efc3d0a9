import type { ErrorClass } from '../client';
import { number } from './format';

const names: Record<ErrorClass, string> = {
  connect: 'no connection',
  timeout: 'timed out',
  stall: 'stalled',
  rate_limited: 'rate limited',
  busy: 'over the limit of load (529)',
  http_4xx: 'rejected by the server (4xx)',
  http_5xx: 'server error (5xx)',
  stream_error: 'stream interrupted',
  truncated: 'answer cut short',
  malformed: 'unreadable answer',
  overrun: 'answer too long',
  empty: 'empty answer',
  member: 'lost with a member',
};

/** Returns the name of an error class. */
export function errorName(name: ErrorClass): string {
  return names[name];
}

/** Lists the numbers of errors by class, the most frequent first: "3 timed out, 1 stalled". */
export function errorList(byClass: Partial<Record<ErrorClass, number>>): string {
  return sorted(byClass)
    .map(([n, words]) => `${number(n)} ${words}`)
    .join(', ');
}

/** Returns the name of the most frequent class. */
export function mostFrequent(byClass: Partial<Record<ErrorClass, number>>): string | undefined {
  return sorted(byClass)[0]?.[1];
}

function sorted(byClass: Partial<Record<ErrorClass, number>>) {
  return Object.keys(names)
    .filter(isErrorClass)
    .map((name) => [byClass[name] ?? 0, names[name]] as const)
    .filter(([n]) => n > 0)
    .sort(([a], [b]) => b - a);
}

function isErrorClass(name: string): name is ErrorClass {
  return name in names;
}
