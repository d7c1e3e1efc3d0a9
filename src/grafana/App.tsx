import React from 'react';
import { css } from '@emotion/css';

import type { GrafanaTheme2 } from '@grafana/data';
import { PluginPage, useChromeHeaderHeight } from '@grafana/runtime';
import { useStyles2 } from '@grafana/ui';

import { ClientProvider } from '../client';
import { grafanaClient, PLUGIN_ID } from '../client/grafana';
import { Troubles } from '../components/Status';
import { PageBase } from '../pages/navigation';
import { PageRoutes, Present, StartStop, useBooth } from '../pages/Shell';

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
  const styles = useStyles2(getStyles, useChromeHeaderHeight());
  const { title, subtitle, live } = useBooth();
  return (
    <PluginPage
      renderTitle={() => <h1>{title}</h1>}
      subTitle={subtitle}
      actions={
        <>
          <Present live={live} />
          <StartStop live={live} />
        </>
      }
    >
      <div className={styles.page}>
        <Troubles live={live} />
        <PageRoutes />
      </div>
    </PluginPage>
  );
}

/** What sticks to the top of a page stays below Grafana's own bar. */
const getStyles = (theme: GrafanaTheme2, barHeight = 0) => ({
  page: css({
    display: 'grid',
    gridTemplateColumns: 'minmax(0, 1fr)',
    gap: theme.spacing(1),
    '--kvbooth-sticky-top': `${barHeight}px`,
  }),
});
