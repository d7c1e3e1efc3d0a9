import { Alert } from '@grafana/ui';

import { usePolled } from '../client';
import { missingPanels, PLUGIN_IDS } from './pluginSettings';

/** Names the app's panels that Grafana has not loaded, and what to do. It renders nothing where all are loaded. */
export function MissingPanels() {
  const { value: missing = [] } = usePolled(missingPanels, false, 'missing panels');
  if (missing.length === 0) {
    return null;
  }
  return (
    <Alert severity="warning" title={`Grafana has not loaded ${missing.join(' and ')}`} bottomSpacing={0}>
      Dashboards show {missing.length === 1 ? 'this panel' : 'these panels'} blank. The app and each of its panels are
      plugins: if Grafana’s setting <code>allow_loading_unsigned_plugins</code> lists the unsigned plugins to load, it
      must include <code>{PLUGIN_IDS.join(',')}</code>. Then restart Grafana.
    </Alert>
  );
}
