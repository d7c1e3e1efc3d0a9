import React, { useCallback, useEffect, useState } from 'react';

import { Alert, LoadingPlaceholder, Stack } from '@grafana/ui';

import { asProblem, ClientProvider } from '../client';
import { grafanaClient } from '../client/grafana';
import { ConnectionForm } from './ConnectionForm';
import { LeaveGuard } from './LeaveGuard';
import { readPluginSettings, type StoredSettings } from './pluginSettings';
import { SidecarForm } from './SidecarForm';

/** The app's configuration: the way to the load generator, and the load generator's own settings. */
export default function ConfigPage() {
  const [stored, setStored] = useState<StoredSettings>();
  const [problem, setProblem] = useState<string>();
  const [generation, setGeneration] = useState(0);
  const [connectionChanged, setConnectionChanged] = useState(false);
  const [sidecarChanged, setSidecarChanged] = useState(false);
  const accept = useCallback((read: StoredSettings) => {
    setStored(read);
    setGeneration((n) => n + 1);
  }, []);
  useEffect(() => {
    readPluginSettings().then(accept, (error: unknown) => setProblem(asProblem(error).message));
  }, [accept]);

  if (problem) {
    return (
      <Alert severity="error" title="The settings cannot be read">
        {problem}
      </Alert>
    );
  }
  if (!stored) {
    return <LoadingPlaceholder text="Loading the settings…" />;
  }
  return (
    <ClientProvider client={grafanaClient}>
      <LeaveGuard unsaved={connectionChanged || sidecarChanged} />
      <Stack direction="column" gap={4}>
        <ConnectionForm
          stored={stored}
          onChanged={setConnectionChanged}
          onSaved={async () => accept(await readPluginSettings())}
        />
        <SidecarForm generation={generation} onChanged={setSidecarChanged} />
      </Stack>
    </ClientProvider>
  );
}
