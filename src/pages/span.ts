import { clock, dateTime } from '../lib/time';

/** A span of time, in milliseconds since 1970, as links from Grafana's dashboards have it. */
export interface Span {
  from?: number;
  to?: number;
}

/** The time before and after a span that is shown with it, in milliseconds: what led to a point, and what followed. */
const AROUND = 60_000;

/** Parses the span of an address's query; empty without one. */
export function spanOf(params: URLSearchParams): Span {
  const [from, to] = [Number(params.get('from')), Number(params.get('to'))];
  return from > 0 && to >= from ? { from, to } : {};
}

/** Returns a span with a minute before and after it. */
export function around({ from, to }: Span): Span {
  return from && to ? { from: from - AROUND, to: to + AROUND } : {};
}

/** Writes a span with the minutes around it: 20 Nov 2026, 18:49 to 18:52. */
export function spanText(span: Span): string | undefined {
  const { from, to } = around(span);
  return from && to ? `${dateTime(from, 'minute')} to ${clock(to, 'minute')}` : undefined;
}
