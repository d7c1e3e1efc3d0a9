import React, { createContext, useContext, useEffect, useMemo, useState, type PropsWithChildren } from 'react';
import { defer, distinctUntilChanged, repeat, retry } from 'rxjs';

import type { Client } from './client';
import type { LaneSnapshot, LiveState, Me } from './types';

const ClientContext = createContext<Client | undefined>(undefined);

/** Gives all below it the way to the data. */
export function ClientProvider({ client, children }: PropsWithChildren<{ client: Client }>) {
  return <ClientContext.Provider value={client}>{children}</ClientContext.Provider>;
}

/** The way to the data. It throws outside a ClientProvider. */
export function useClient(): Client {
  const client = useContext(ClientContext);
  if (!client) {
    throw new Error('useClient needs a ClientProvider above it');
  }
  return client;
}

/** The present moment, and the lane's part of it while it is live. */
export interface Live {
  state: LiveState;
  /** Undefined while loading or lost, and where the sidecar has no such lane. */
  lane?: LaneSnapshot;
}

/** Follows a lane for as long as the component is there. */
export function useLive(name: string): Live {
  const client = useClient();
  const [state, setState] = useState<LiveState>({ status: 'loading' });
  useEffect(() => {
    const subscription = client.live(name).subscribe(setState);
    return () => subscription.unsubscribe();
  }, [client, name]);
  return useMemo(
    () => ({ state, lane: state.status === 'live' ? state.snapshot.lanes.find((l) => l.name === name) : undefined }),
    [state, name]
  );
}

/** How often who looks is asked for again, in milliseconds: roles and settings change. */
export const ME_EVERY = 30_000;

/** How long a question that had no answer rests, in milliseconds. */
export const ME_RETRY = 3000;

/** Who looks; undefined until it is known. While it is not, nobody may change anything. */
export function useMe(): Me | undefined {
  const client = useClient();
  const [me, setMe] = useState<Me>();
  useEffect(() => {
    const subscription = defer(() => client.me())
      .pipe(retry({ delay: ME_RETRY }), repeat({ delay: ME_EVERY }), distinctUntilChanged(isSame))
      .subscribe(setMe);
    return () => subscription.unsubscribe();
  }, [client]);
  return me;
}

function isSame(a: Me, b: Me): boolean {
  return JSON.stringify(a) === JSON.stringify(b);
}
