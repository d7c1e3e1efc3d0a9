import { useBaselines, useLive } from '../../client';
import { lastKnown } from '../../lib/known';
import { NotLoaded } from '../Loading';
import { Imported } from './Imported';
import { ImportForm } from './ImportForm';

/** The imported baselines, and a form to import more. */
export function Baselines({ lane }: { lane: string }) {
  const settings = lastKnown(useLive(lane), lane)?.settings;
  const { value: baselines, problem } = useBaselines(settings?.slo);
  if (!baselines) {
    return <NotLoaded what="baselines" problem={problem} />;
  }
  return (
    <>
      <Imported baselines={baselines} />
      <ImportForm baselines={baselines} settings={settings} />
    </>
  );
}
