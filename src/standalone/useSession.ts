import { useCallback, useMemo } from 'react';

import { usePolled, type Session } from '../client';
import type { StandaloneClient } from '../client/standalone';

/**
 * How often what one may do is asked for, in milliseconds: a session ends with the load generator or after its time.
 */
export const SESSION_EVERY = 10_000;

/** What one may do, and how to be let in. */
export interface Access {
  /** Undefined until the first answer; null where the first question had none. */
  session?: Session | null;
  /** Exchanges the token; it rejects with a Problem. */
  signIn(token: string): Promise<void>;
  /** Ends the session; it rejects with a Problem. */
  signOut(): Promise<void>;
}

/** Asks again and again what one may do. Who signs in or out needs a client that knows nothing of before. */
export function useSession(client: StandaloneClient, renew: () => void): Access {
  const { value, problem } = usePolled(() => client.session(), SESSION_EVERY, 'session');
  const session = value ?? (problem && null);
  const signIn = useCallback((token: string) => client.signIn(token).then(renew), [client, renew]);
  const signOut = useCallback(() => client.signOut().then(renew), [client, renew]);
  return useMemo(() => ({ session, signIn, signOut }), [session, signIn, signOut]);
}
