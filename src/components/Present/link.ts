/** A time range, in milliseconds since 1970. */
export interface TimeSpan {
  from: number;
  to: number;
}

/** Returns an address with a fixed time range in place of a relative one such as "the last 15 minutes". */
export function shareLink(address: string, span?: TimeSpan): string {
  const url = new URL(address);
  if (span) {
    url.searchParams.set('from', String(span.from));
    url.searchParams.set('to', String(span.to));
  }
  return url.href;
}
