import { useSyncExternalStore } from 'react';

import { Button } from '@grafana/ui';

/** Enters and leaves full screen. It is hidden where the browser does not permit full screen. */
export function FullScreenButton() {
  const full = useSyncExternalStore(subscribe, isFull);
  if (!document.fullscreenEnabled) {
    return null;
  }
  const words = full ? 'Exit full screen' : 'Full screen';
  // A refusal changes nothing, and the browser reports it.
  const toggle = () =>
    void (full ? document.exitFullscreen() : document.documentElement.requestFullscreen()).catch(() => undefined);
  return <Button variant="secondary" fill="text" icon="monitor" aria-label={words} tooltip={words} onClick={toggle} />;
}

function isFull(): boolean {
  return Boolean(document.fullscreenElement); // undefined where it is not supported
}

function subscribe(changed: () => void): () => void {
  document.addEventListener('fullscreenchange', changed);
  return () => document.removeEventListener('fullscreenchange', changed);
}
