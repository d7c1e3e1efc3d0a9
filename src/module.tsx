import React, { lazy, Suspense } from 'react';

import { AppPlugin, type AppRootProps } from '@grafana/data';
import { LoadingPlaceholder } from '@grafana/ui';

import type { PluginSettings } from './config/pluginSettings';

const LazyApp = lazy(() => import('./grafana/App'));
const LazyConfigPage = lazy(() => import('./config/ConfigPage'));

function Root(_: AppRootProps<PluginSettings>) {
  return (
    <Suspense fallback={<LoadingPlaceholder text="" />}>
      <LazyApp />
    </Suspense>
  );
}

function Config() {
  return (
    <Suspense fallback={<LoadingPlaceholder text="" />}>
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
