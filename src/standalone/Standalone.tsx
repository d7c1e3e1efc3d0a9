import { useMemo, useReducer } from 'react';
import { BrowserRouter } from 'react-router-dom';

import { ThemeContext } from '@grafana/data';
import { GlobalStyles } from '@grafana/ui';

import { ClientProvider } from '../client';
import { standaloneClient, type StandaloneClient } from '../client/standalone';
import { Loading } from '../components/Loading';
import { stylesOf } from '../lib/styles';
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

/** Shows the pages to users who may see them, and the sign-in page to others. */
function Gate({ client, renew }: { client: StandaloneClient; renew(): void }) {
  const styles = useStyles();
  const access = useSession(client, renew);
  const { session } = access;
  if (session === undefined) {
    return (
      <main className={styles.loading}>
        <Loading text="Loading KV Booth…" bars={8} />
      </main>
    );
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

const useStyles = stylesOf((theme) => ({
  loading: { minHeight: '100vh', padding: theme.spacing(2), background: theme.colors.background.canvas },
}));
