import { lazy, Suspense, useState } from 'react';

import { Button, Modal } from '@grafana/ui';

import { useMe } from '../../client';
import { Loading } from '../Loading';

/** The form is loaded on demand, because imports are rare. */
const Baselines = lazy(() => import('./Baselines').then((module) => ({ default: module.Baselines })));

/** Opens the import of baselines, for users who may configure. */
export function ImportButton({ lane }: { lane: string }) {
  const [open, setOpen] = useState(false);
  if (!useMe()?.canConfigure) {
    return null;
  }
  return (
    <>
      <Button variant="secondary" size="sm" icon="upload" onClick={() => setOpen(true)}>
        Import…
      </Button>
      {open && (
        <Modal title="Imported baselines" isOpen onDismiss={() => setOpen(false)}>
          <Suspense fallback={<Loading text="Loading the form…" />}>
            <Baselines lane={lane} />
          </Suspense>
        </Modal>
      )}
    </>
  );
}
