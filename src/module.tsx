import { lazy, Suspense } from 'react';

import { AppPlugin, type AppRootProps } from '@grafana/data';

import { Loading } from './components/Loading';
import type { PluginSettings } from './config/pluginSettings';

const LazyApp = lazy(() => import('./grafana/App'));
const LazyConfigPage = lazy(() => import('./config/ConfigPage'));

function Root(_: AppRootProps<PluginSettings>) {
  return (
    <Suspense fallback={<Loading text="Loading KV Booth…" bars={8} />}>
      <LazyApp />
    </Suspense>
  );
}

function Config() {
  return (
    <Suspense fallback={<Loading text="Loading KV Booth…" bars={8} />}>
      <LazyConfigPage />
    </Suspense>
  );
}

/** The app. */
export const plugin = new AppPlugin<PluginSettings>().setRootPage(Root).addConfigPage({
  title: 'Configuration',
  icon: 'cog',
  body: Config,
  id: 'configuration',
});
