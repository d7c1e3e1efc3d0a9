import React, { memo } from 'react';

import { Badge } from '@grafana/ui';

import type { LaneSnapshot } from '../../client';
import { simulationNote, targetKind, targetNotes, type TargetKind } from '../../lib/target';

const names: Partial<Record<TargetKind, string>> = { simulated: 'Simulated cluster', mock: 'Mock workers' };

/** Says that the cluster is no real one, and whether its timing was fitted to anything; of a real one nothing. */
export function Imitation({ lane }: { lane?: LaneSnapshot }) {
  const kind = targetKind(lane, undefined);
  return <Mark kind={kind} note={lane && simulationNote(lane.state)} />;
}

/** Drawn anew only when it says something else: a badge with a tooltip is not cheap. */
const Mark = memo(function Mark({ kind, note }: { kind: TargetKind; note?: string }) {
  const name = names[kind];
  if (!name) {
    return null;
  }
  return note ? (
    <Badge color="orange" text={`${name}, not calibrated`} tooltip={`${targetNotes[kind]} Not calibrated: ${note}`} />
  ) : (
    <Badge color="blue" text={name} tooltip={targetNotes[kind]} />
  );
});
