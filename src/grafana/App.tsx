import { useEffect, type CSSProperties, type PropsWithChildren } from 'react';

import { locationUtil } from '@grafana/data';
import { PluginPage, useChromeHeaderHeight } from '@grafana/runtime';
import { LinkButton, Portal } from '@grafana/ui';

import { ClientProvider, useMe } from '../client';
import { grafanaClient, PLUGIN_ID } from '../client/grafana';
import { Troubles } from '../components/Status';
import { LINE, stylesOf } from '../lib/styles';
import { hasTwin } from '../pages/lane';
import { PageBase, usePagePath } from '../pages/navigation';
import { pages } from '../pages/registry';
import { PageRoutes, Present, StartStop, ViewTools, useBooth, useCurrentPage, useStageKey } from '../pages/Shell';
import { FirstRun } from './Configured';

/** The app inside Grafana, which has its own navigation and breadcrumbs. */
export default function App() {
  return (
    <PageBase.Provider value={`/a/${PLUGIN_ID}`}>
      <ClientProvider client={grafanaClient}>
        <Layout />
      </ClientProvider>
    </PageBase.Provider>
  );
}

function Layout() {
  const styles = useStyles();
  // The parts that stick to the top of a page stay below Grafana's own bar.
  const bar = { '--kvbooth-sticky-top': `${useChromeHeaderHeight() ?? 0}px` } as CSSProperties;
  const { title, subtitle, live } = useBooth();
  const me = useMe();
  const page = useCurrentPage();
  useStageKey();
  if (me?.configured === false) {
    return (
      <PluginPage renderTitle={() => <h1>{title}</h1>}>
        <FirstRun mayConfigure={me.canConfigure} />
      </PluginPage>
    );
  }
  if (page?.bare) {
    return (
      <PluginPage>
        <WholeScreen>
          <PageRoutes />
        </WholeScreen>
      </PluginPage>
    );
  }
  // Grafana's breadcrumbs and the browser's title name only pages that are in its menu.
  const unnamed = page && (page.path === '' || page.nested || page.twin);
  return (
    <PluginPage
      pageNav={unnamed ? { text: page.title } : undefined}
      renderTitle={() => <h1>{title}</h1>}
      subTitle={subtitle}
      actions={
        <div className={styles.actions}>
          <Present live={live} />
          <StartStop live={live} />
          {hasTwin(live) && !page?.twin && <ToBoth />}
          <ViewTools />
        </div>
      }
    >
      <div className={styles.page} style={bar}>
        <Troubles live={live} />
        <PageRoutes />
      </div>
    </PluginPage>
  );
}

/** The link to the page of two routers. Grafana's menu cannot contain it, because it exists only with two lanes. */
function ToBoth() {
  const page = pages.find(({ twin }) => twin);
  const address = usePagePath()(page?.path ?? '');
  return page ? (
    <LinkButton variant="secondary" icon={page.icon} href={locationUtil.assureBaseUrl(address)}>
      {page.title}
    </LinkButton>
  ) : null;
}

/**
 * A page over all of Grafana, because an app cannot enable Grafana's kiosk mode. It lies below dialogs, which have the
 * same parent, and above the rest, which receives no keys meanwhile.
 */
function WholeScreen({ children }: PropsWithChildren) {
  const styles = useStyles();
  useEffect(() => {
    const portals = document.getElementById('grafana-portal-container');
    const rest = Array.from(portals?.parentElement?.children ?? []).filter(
      (e) => e !== portals && !e.hasAttribute('inert')
    );
    rest.forEach((element) => element.setAttribute('inert', ''));
    return () => rest.forEach((element) => element.removeAttribute('inert'));
  }, []);
  return (
    <Portal zIndex={1}>
      <main className={styles.whole}>{children}</main>
    </Portal>
  );
}

const useStyles = stylesOf((theme) => ({
  actions: { ...LINE, gap: theme.spacing(1) },
  whole: { position: 'fixed', inset: 0, overflow: 'auto', background: theme.colors.background.canvas },
  page: { display: 'grid', gridTemplateColumns: 'minmax(0, 1fr)', gap: theme.spacing(1) },
}));
