import { useCallback, useMemo } from 'react';

import { usePolled, type Session } from '../client';
import type { StandaloneClient } from '../client/standalone';

/**
 * The interval between requests for the session, in milliseconds: a session ends with the load generator or when it
 * expires.
 */
export const SESSION_EVERY = 10_000;

/** The session's permissions, and how to sign in and out. */
export interface Access {
  /** Undefined until the first answer; null where the first request failed. */
  session?: Session | null;
  /** Exchanges the token for a session. It rejects with a Problem. */
  signIn(token: string): Promise<void>;
  /** Ends the session. It rejects with a Problem. */
  signOut(): Promise<void>;
}

/** Polls the session. Signing in or out requires a new client, because the cache belongs to the old session. */
export function useSession(client: StandaloneClient, renew: () => void): Access {
  const { value, problem } = usePolled(() => client.session(), SESSION_EVERY, 'session');
  const session = value ?? (problem && null);
  const signIn = useCallback((token: string) => client.signIn(token).then(renew), [client, renew]);
  const signOut = useCallback(() => client.signOut().then(renew), [client, renew]);
  return useMemo(() => ({ session, signIn, signOut }), [session, signIn, signOut]);
}
