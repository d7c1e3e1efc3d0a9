import React, { useMemo, useReducer } from 'react';
import { BrowserRouter } from 'react-router-dom';

import { ThemeContext } from '@grafana/data';
import { GlobalStyles } from '@grafana/ui';

import { ClientProvider } from '../client';
import { standaloneClient, type StandaloneClient } from '../client/standalone';
import { Layout } from './Layout';
import { SignIn } from './SignIn';
import { themeOf } from './theme';
import { useScheme } from './useScheme';
import { useSession } from './useSession';

/** The app outside Grafana. */
export function Standalone() {
  const [scheme] = useScheme();
  const theme = useMemo(() => themeOf(scheme), [scheme]);
  const [client, renew] = useReducer(standaloneClient, undefined, standaloneClient);
  return (
    <ThemeContext.Provider value={theme}>
      <GlobalStyles />
      <ClientProvider client={client}>
        <Gate client={client} renew={renew} />
      </ClientProvider>
    </ThemeContext.Provider>
  );
}

/** Shows the pages to whom they are for, and to others how to be let in. */
function Gate({ client, renew }: { client: StandaloneClient; renew(): void }) {
  const access = useSession(client, renew);
  const { session } = access;
  if (session === undefined) {
    return null; // the answer comes from the next room
  }
  if (session && !session.can_read) {
    return <SignIn access={access} />;
  }
  return (
    <BrowserRouter future={{ v7_startTransition: true, v7_relativeSplatPath: true }}>
      <Layout access={access} />
    </BrowserRouter>
  );
}
