import React, { useMemo } from 'react';
import { BrowserRouter } from 'react-router-dom';

import { ThemeContext } from '@grafana/data';
import { GlobalStyles } from '@grafana/ui';

import { ClientProvider } from '../client';
import { Layout } from './Layout';
import { SignIn } from './SignIn';
import { themeOf } from './theme';
import { useScheme } from './useScheme';
import { useSession } from './useSession';

/** The app outside Grafana. */
export function Standalone() {
  const [scheme] = useScheme();
  const theme = useMemo(() => themeOf(scheme), [scheme]);
  return (
    <ThemeContext.Provider value={theme}>
      <GlobalStyles />
      <Gate />
    </ThemeContext.Provider>
  );
}

/** Shows the pages to whom they are for, and to others how to be let in. */
function Gate() {
  const access = useSession();
  const { client, session } = access;
  if (session === undefined) {
    return null; // the answer comes from the next room
  }
  if (session && !session.can_read) {
    return <SignIn access={access} />;
  }
  return (
    <ClientProvider client={client}>
      <BrowserRouter future={{ v7_startTransition: true, v7_relativeSplatPath: true }}>
        <Layout access={access} />
      </BrowserRouter>
    </ClientProvider>
  );
}
