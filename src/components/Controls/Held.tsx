import React from 'react';

import { Alert } from '@grafana/ui';

import type { LaneSnapshot, Problem, WorkloadPatch } from '../../client';
import { number } from '../../lib/format';
import { describeHold, limiterOf, limitName } from '../../lib/hold';
import { WorkloadForm } from './WorkloadForm';

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
  const by = limiterOf(lane);
  const held = describeHold(lane);
  if (!by || (by === 'start_rate' && !held)) {
    return null;
  }
  const { actual, target } = state.concurrency;
  const title = held
    ? `${held.charAt(0).toUpperCase()}${held.slice(1)}`
    : `Slowed by ${limitName(by, state)}: ${number(actual)} of ${number(target)} conversations in progress`;
  return (
    <Alert severity="info" title={title} bottomSpacing={0}>
      {held && <div>Results are compared and stored at concurrency {number(state.step.held?.at)}.</div>}
      {form && <WorkloadForm state={state} only={by} {...form} />}
    </Alert>
  );
}
