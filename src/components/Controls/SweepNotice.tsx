import { Alert } from '@grafana/ui';

import type { SweepSummary } from '../../client';
import { sweepHint, sweepInProgress } from '../../lib/sweeps';

/** Reports that a trial, a sweep or a capacity search has the workload, in place of the disabled controls. */
export function SweepNotice({ sweep }: { sweep: SweepSummary }) {
  return (
    <Alert severity="info" title={sweepInProgress(sweep)} bottomSpacing={0}>
      {sweepHint(sweep)}
    </Alert>
  );
}
