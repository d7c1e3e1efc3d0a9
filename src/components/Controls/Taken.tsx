import React from 'react';

import { Alert } from '@grafana/ui';

import type { SweepSummary } from '../../client';
import { takenHint, takenTitle } from '../../lib/sweeps';

/** Reports that a trial, a sweep or a capacity search has the workload, in place of the disabled controls. */
export function Taken({ sweep }: { sweep: SweepSummary }) {
  return (
    <Alert severity="info" title={takenTitle(sweep)} bottomSpacing={0}>
      {takenHint(sweep)}
    </Alert>
  );
}
