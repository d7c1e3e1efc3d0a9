import React, { useSyncExternalStore } from 'react';

import { Button } from '@grafana/ui';

/**
 * Fills the screen with what the browser shows, and gives it back. It is not there where the browser does not permit
 * that.
 */
export function FullScreenButton() {
  const full = useSyncExternalStore(subscribe, isFull);
  if (!document.fullscreenEnabled) {
    return null;
  }
  const words = full ? 'Exit full screen' : 'Full screen';
  // Who is refused stays where he is: the browser says why.
  const toggle = () =>
    void (full ? document.exitFullscreen() : document.documentElement.requestFullscreen()).catch(() => undefined);
  return <Button variant="secondary" fill="text" icon="monitor" aria-label={words} tooltip={words} onClick={toggle} />;
}

function isFull(): boolean {
  return Boolean(document.fullscreenElement); // undefined where there is no such thing
}

function subscribe(changed: () => void): () => void {
  document.addEventListener('fullscreenchange', changed);
  return () => document.removeEventListener('fullscreenchange', changed);
}
