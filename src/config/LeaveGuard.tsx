import { useEffect, useState } from 'react';

import { locationService } from '@grafana/runtime';
import { ConfirmModal } from '@grafana/ui';

/** The address that the blocked navigation leads to. */
interface Destination {
  pathname: string;
  search: string;
  hash: string;
}

/** Confirms that unsaved changes are dropped, inside Grafana and when the tab closes. */
export function LeaveGuard({ unsaved }: { unsaved: boolean }) {
  const [destination, setDestination] = useState<Destination>();
  const [leaving, setLeaving] = useState(false);
  const guards = unsaved && !leaving;

  useEffect(() => {
    if (!guards) {
      return undefined;
    }
    const ask = (event: BeforeUnloadEvent) => event.preventDefault();
    window.addEventListener('beforeunload', ask);
    const unblock = locationService.getHistory().block((to: Destination) => {
      setDestination(to);
      return false;
    });
    return () => {
      window.removeEventListener('beforeunload', ask);
      unblock();
    };
  }, [guards]);

  // The block is removed before this effect runs.
  useEffect(() => {
    if (leaving && destination) {
      locationService.push(`${destination.pathname}${destination.search}${destination.hash}`);
    }
  }, [leaving, destination]);

  return (
    <ConfirmModal
      isOpen={destination !== undefined && !leaving}
      title="Leave without saving?"
      body="Unsaved changes on this page will be lost."
      confirmText="Leave"
      dismissText="Stay"
      onConfirm={() => setLeaving(true)}
      onDismiss={() => setDestination(undefined)}
    />
  );
}
