import { memo } from 'react';

import { Badge } from '@grafana/ui';

import type { LaneSnapshot } from '../../client';
import { simulationNote, targetKind, targetNotes, type TargetKind } from '../../lib/target';

const names: Partial<Record<TargetKind, string>> = { simulated: 'Simulated cluster', mock: 'Mock workers' };

/** Reports that the cluster is simulated, and whether its timing was fitted. It renders nothing for a real one. */
export function Imitation({ lane }: { lane?: LaneSnapshot }) {
  const kind = targetKind(lane, undefined);
  return <Mark kind={kind} note={lane && simulationNote(lane.state)} />;
}

/** Rendered again only when its text changes: a badge with a tooltip is expensive. */
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
