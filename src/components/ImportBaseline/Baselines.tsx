import { Alert } from '@grafana/ui';

import { useBaselines, useLive } from '../../client';
import { lastKnown } from '../../lib/known';
import { Loading } from '../Loading';
import { Imported } from './Imported';
import { ImportForm } from './ImportForm';

/** The imported baselines, and a form to import more. */
export function Baselines({ lane }: { lane: string }) {
  const settings = lastKnown(useLive(lane), lane)?.settings;
  const { value: baselines, problem } = useBaselines(settings?.slo);
  if (!baselines) {
    return problem ? (
      <Alert severity="warning" title="The baselines could not be loaded">
        {problem.message}
      </Alert>
    ) : (
      <Loading text="Loading the baselines…" />
    );
  }
  return (
    <>
      <Imported baselines={baselines} />
      <ImportForm baselines={baselines} settings={settings} />
    </>
  );
}
