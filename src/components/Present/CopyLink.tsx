import { useState } from 'react';

import { ClipboardButton } from '@grafana/ui';

interface CopyLinkProps {
  /** The time range in view, where it can be chosen. */
  span?(): TimeSpan;
  size?: 'sm' | 'md';
}

/** Copies the address of the current view, with the selection and a fixed time range. */
export function CopyLink({ span, size = 'md' }: CopyLinkProps) {
  const [refused, setRefused] = useState<string>();
  return (
    <>
      <ClipboardButton
        variant="secondary"
        fill="text"
        size={size}
        icon="link"
        aria-label="Copy link"
        tooltip={
          span ? 'Copy a link to this dashboard and time range' : 'Copy a link to this page in its current state'
        }
        getText={() => shareLink(window.location.href, span?.())}
        onClipboardCopy={() => setRefused(undefined)}
        onClipboardError={setRefused}
      />
      {refused && <span role="alert">The browser blocked copying the link: {refused}</span>}
    </>
  );
}

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
