import { useCallback, useEffect, useMemo, useReducer, useState } from 'react';
import { catchError, defer, exhaustMap, of, timer } from 'rxjs';

import type { Session } from '../client';
import { standaloneClient, type StandaloneClient } from '../client/standalone';
import { share } from '../lib/share';

/** How often what one may do is asked for, in milliseconds: a session ends with the load generator or after its time. */
export const SESSION_EVERY = 10_000;

/** What one may do, and how to be let in. */
export interface Access {
  client: StandaloneClient;
  /** Undefined until the first answer; null where the first question had none. */
  session?: Session | null;
  /** Exchanges the token; it rejects with a Problem. */
  signIn(token: string): Promise<void>;
  /** Ends the session; it rejects with a Problem. */
  signOut(): Promise<void>;
}

/** Asks again and again what one may do. Who signs in or out gets a client that knows nothing of before. */
export function useSession(make: () => StandaloneClient = standaloneClient): Access {
  const [client, renew] = useReducer(make, undefined, make);
  const [session, setSession] = useState<Session | null>();
  useEffect(() => {
    const answers = timer(0, SESSION_EVERY).pipe(
      exhaustMap(() => defer(() => client.session()).pipe(catchError(() => of(null))))
    );
    const subscription = answers.subscribe((answer) =>
      setSession((before) => (answer === null ? (before ?? null) : share(before ?? undefined, answer)))
    );
    return () => subscription.unsubscribe();
  }, [client]);
  const signIn = useCallback((token: string) => client.signIn(token).then(renew), [client]);
  const signOut = useCallback(() => client.signOut().then(renew), [client]);
  return useMemo(() => ({ client, session, signIn, signOut }), [client, session, signIn, signOut]);
}
