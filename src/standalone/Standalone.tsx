import { useReducer } from 'react';
import { BrowserRouter } from 'react-router-dom';

import { createTheme, ThemeContext, type GrafanaTheme2 } from '@grafana/data';
import { GlobalStyles } from '@grafana/ui';

import { ClientProvider } from '../client';
import { standaloneClient, type StandaloneClient } from '../client/standalone';
import { Loading } from '../components/Loading';
import { stylesOf } from '../lib/styles';
import { Layout } from './Layout';
import { SignIn } from './SignIn';
import { useScheme, type Scheme } from './useScheme';
import { useSession } from './useSession';

/** The app outside Grafana. */
export function Standalone() {
  const [scheme] = useScheme();
  const [client, renew] = useReducer(standaloneClient, undefined, standaloneClient);
  return (
    <ThemeContext.Provider value={themes[scheme]}>
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

/** Code uses the system's own font, which saves a download for a few words. */
const typography = {
  fontFamilyMonospace: 'ui-monospace, "Cascadia Mono", "Liberation Mono", Menlo, Consolas, monospace',
};

const themes: Record<Scheme, GrafanaTheme2> = {
  dark: createTheme({ colors: { mode: 'dark' }, typography }),
  light: createTheme({ colors: { mode: 'light' }, typography }),
};

const useStyles = stylesOf((theme) => ({
  loading: { minHeight: '100vh', padding: theme.spacing(2), background: theme.colors.background.canvas },
}));
