import { useState } from 'react';
import { useQueryClient } from '@tanstack/react-query';

import { Alert, FieldSet, Stack } from '@grafana/ui';

import { ClientProvider, usePolled } from '../client';
import { grafanaClient } from '../client/grafana';
import { Baselines } from '../components/ImportBaseline/Baselines';
import { NotLoaded } from '../components/Loading';
import { LANE } from '../pages/lane';
import { ConnectionForm } from './ConnectionForm';
import { LeaveGuard } from './LeaveGuard';
import { SidecarForm } from './SidecarForm';
import { missingPanels, PLUGIN_IDS, readPluginSettings } from './pluginSettings';

/** The app's configuration page: the connection to the load generator, and the load generator's own settings. */
export default function ConfigPage() {
  return (
    <ClientProvider client={grafanaClient}>
      <Forms />
    </ClientProvider>
  );
}

function Forms() {
  const queries = useQueryClient();
  const { value: stored, problem } = usePolled(readPluginSettings, false, 'plugin settings');
  const [connectionChanged, setConnectionChanged] = useState(false);
  const [sidecarChanged, setSidecarChanged] = useState(false);
  if (!stored) {
    return <NotLoaded what="settings" problem={problem} />;
  }
  return (
    <>
      <LeaveGuard unsaved={connectionChanged || sidecarChanged} />
      <Stack direction="column" gap={4}>
        {!stored.enabled && (
          <Alert severity="info" title="The app is not enabled yet" bottomSpacing={0}>
            Press Enable at the top of this page. Settings saved before that are kept.
          </Alert>
        )}
        <MissingPanels />
        <ConnectionForm
          stored={stored}
          onChanged={setConnectionChanged}
          onSaved={() => queries.invalidateQueries()} // another load generator has other settings
        />
        {stored.enabled && stored.jsonData.sidecarUrl?.trim() ? (
          <>
            <SidecarForm onChanged={setSidecarChanged} />
            <FieldSet label="Baselines">
              <Baselines lane={LANE} />
            </FieldSet>
          </>
        ) : (
          <p>
            The load generator’s own settings and its baselines appear here once{' '}
            {!stored.enabled && 'the app is enabled and '}the connection is saved.
          </p>
        )}
      </Stack>
    </>
  );
}

/** Names the app's panels that Grafana has not loaded, and what to do. It renders nothing where all are loaded. */
function MissingPanels() {
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
