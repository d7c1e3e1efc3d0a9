import { Alert } from '@grafana/ui';

import type { LaneSnapshot, Problem, SweepSummary, WorkloadPatch } from '../../client';
import { number } from '../../lib/format';
import { describeHold, limiterOf, limitName } from '../../lib/hold';
import { kindOf, progressText } from '../../lib/level';
import { sweepHint, sweepInProgress } from '../../lib/sweeps';
import { capital } from '../../lib/text';
import { Traffic } from '../Traffic';

interface HeldProps {
  lane: LaneSnapshot;
  /** The control that changes the limit, for operators. */
  form?: {
    disabled: boolean;
    busy: boolean;
    problem?: Problem;
    onApply(patch: WorkloadPatch): Promise<boolean>;
  };
}

/**
 * Reports that a limit keeps the workload below its concurrency, with the limit's control
 * beside the message. The start rate is reported only where it stops the workload: otherwise
 * the workload still ramps up.
 */
export function Held({ lane, form }: HeldProps) {
  const { state } = lane;
  const limiter = limiterOf(lane);
  const holdText = describeHold(lane);
  if (!limiter || (limiter === 'start_rate' && !holdText)) {
    return null;
  }
  const { actual, target } = state.concurrency;
  const progress = progressText(actual, target);
  const title = holdText
    ? capital(holdText)
    : `Slowed by ${limitName(limiter, state)}: ${progress}${kindOf(target) === 'rate' ? '' : ' in progress'}`;
  return (
    <Alert severity="info" title={title} bottomSpacing={0}>
      {holdText && <div>Results are compared and stored at concurrency {number(state.step.held?.at)}.</div>}
      {form && <Traffic {...form} lane={lane.name} state={state} level={target} only={limiter} />}
    </Alert>
  );
}

/** Reports that the target does not keep up with a rate. */
export function Growing({ state: { concurrency } }: LaneSnapshot) {
  return concurrency.grows ? (
    <Alert severity="warning" title="The queue grows without end" bottomSpacing={0}>
      The target does not keep up: {progressText(concurrency.actual, concurrency.target)}. Latencies say how long the
      load has run, not how good the router is. Set a lower rate.
    </Alert>
  ) : null;
}

/** Reports that a trial, a sweep or a capacity search has the workload, in place of the disabled controls. */
export function SweepNotice({ sweep }: { sweep: SweepSummary }) {
  return (
    <Alert severity="info" title={sweepInProgress(sweep)} bottomSpacing={0}>
      {sweepHint(sweep)}
    </Alert>
  );
}
