/** From when to when, in milliseconds since 1970. */
export interface TimeSpan {
  from: number;
  to: number;
}

/** An address, with a span of time in the place of whatever "the last 15 minutes" would be later. */
export function shareLink(address: string, span?: TimeSpan): string {
  const url = new URL(address);
  if (span) {
    url.searchParams.set('from', String(span.from));
    url.searchParams.set('to', String(span.to));
  }
  return url.href;
}
