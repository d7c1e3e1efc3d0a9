import { createContext, useContext, useEffect, useMemo, useState, type PropsWithChildren } from 'react';
import { QueryClient, QueryClientProvider } from '@tanstack/react-query';

import type { Client } from './client';
import type { LaneSnapshot, LiveState, Me } from './types';
import { usePolled } from './usePolled';

const ClientContext = createContext<Client | undefined>(undefined);

/** Provides the client and one cache of queries to its children. Another client starts with an empty cache. */
export function ClientProvider({ client, children }: PropsWithChildren<{ client: Client }>) {
  const [queries] = useState(newQueries);
  useEffect(() => void queries.invalidateQueries(), [queries, client]);
  return (
    <QueryClientProvider client={queries}>
      <ClientContext.Provider value={client}>{children}</ClientContext.Provider>
    </QueryClientProvider>
  );
}

/**
 * A query runs even when the browser reports that it is offline, because the load generator
 * may be reachable. An unused result is dropped at once, so that no old number is shown later.
 */
function newQueries(): QueryClient {
  const queries = { networkMode: 'always', retry: false, gcTime: 1000, refetchOnWindowFocus: false } as const;
  return new QueryClient({ defaultOptions: { queries } });
}

/** Returns the client. It throws outside a ClientProvider. */
export function useClient(): Client {
  const client = useContext(ClientContext);
  if (!client) {
    throw new Error('useClient needs a ClientProvider above it');
  }
  return client;
}

/** The live state, and the lane's part of it while it is live. */
export interface Live {
  state: LiveState;
  /** Undefined while loading or lost, and where the sidecar has no such lane. */
  lane?: LaneSnapshot;
}

/** The live state of one lane, by its name. Every snapshot has all lanes. */
export function ofLane({ state }: Pick<Live, 'state'>, name: string): Live {
  return { state, lane: state.status === 'live' ? state.snapshot.lanes.find((l) => l.name === name) : undefined };
}

/** Subscribes to a lane while the component is mounted. */
export function useLive(name: string): Live {
  const client = useClient();
  const [state, setState] = useState<LiveState>(LOADING);
  useEffect(() => {
    const subscription = client.live(name).subscribe(setState);
    return () => subscription.unsubscribe();
  }, [client, name]);
  return useMemo(() => ofLane({ state }, name), [state, name]);
}

/** Subscribes to one value of a lane. The component renders only when the value changes. */
export function useLiveValue<T extends string | boolean | undefined>(name: string, value: (live: Live) => T): T {
  const client = useClient();
  const [known, setKnown] = useState(() => value({ state: LOADING }));
  useEffect(() => {
    const subscription = client.live(name).subscribe((state) => setKnown(value(ofLane({ state }, name))));
    return () => subscription.unsubscribe();
  }, [client, name, value]);
  return known;
}

const LOADING: LiveState = { status: 'loading' };

/** The interval between requests for the current user, in milliseconds: roles and settings change. */
export const ME_EVERY = 30_000;

/**
 * The pause after a request for the user that failed, or while the app is not configured,
 * in milliseconds.
 */
export const ME_RETRY = 3000;

/** The current user; undefined until it is known. Until then, every control is disabled. */
export function useMe(): Me | undefined {
  const client = useClient();
  return usePolled(
    () => client.me(),
    ({ value, problem }) => (problem || value?.configured === false ? ME_RETRY : ME_EVERY),
    'me'
  ).value;
}
