import { useMemo } from 'react';

import { readStatus, useClient, usePolled, type Live, type QuestionerKind } from '../../client';
import { lastKnown } from '../../lib/known';
import { targetKind, type TargetKind } from '../../lib/target';

/** How often the load generator is asked what its target takes, in milliseconds: it changes with the target only. */
const STATUS_EVERY = 15_000;

/** What is known of the target beside the snapshot. */
export interface TargetFacts {
  kind: TargetKind;
  questioner?: QuestionerKind;
  /** Who asks the follow-up questions, as the load generator names it. */
  followup?: string;
}

/** Follows what a lane puts under load; what was known last outlives a loss. */
export function useTarget(live: Live, name: string): TargetFacts {
  const client = useClient();
  const lane = lastKnown(live, name)?.lane;
  const load = () => readStatus(client);
  const { value } = usePolled(live.lane ? load : undefined, STATUS_EVERY, 'status');
  const status = value?.lanes.find((l) => l.name === name);
  const kind = targetKind(lane, status?.extensions);
  const questioner = lane?.state.questioner;
  const followup = lane?.state.shape.followup ?? status?.corpus.followup;
  return useMemo(() => ({ kind, questioner, followup }), [kind, questioner, followup]);
}
