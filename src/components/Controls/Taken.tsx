import React from 'react';

import { Alert } from '@grafana/ui';

import type { SweepSummary } from '../../client';
import { takenHint, takenTitle } from '../../lib/sweeps';

/** Says that a trial, a sweep or a capacity search has the workload, in place of what cannot be steered meanwhile. */
export function Taken({ sweep }: { sweep: SweepSummary }) {
  return (
    <Alert severity="info" title={takenTitle(sweep)} bottomSpacing={0}>
      {takenHint(sweep)}
    </Alert>
  );
}
