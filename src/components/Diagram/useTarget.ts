import { useMemo } from 'react';

import { readStatus, useClient, usePolled, type Live, type QuestionerKind } from '../../client';
import { lastKnown } from '../../lib/known';
import { targetKind, type TargetKind } from '../../lib/target';

/** The interval between requests for the status, in milliseconds: it changes with the target only. */
const STATUS_EVERY = 15_000;

/** The target's properties that snapshots lack. */
export interface TargetFacts {
  kind: TargetKind;
  questioner?: QuestionerKind;
  /** The source of the follow-up questions, by the load generator's name. */
  followup?: string;
}

/** Polls the properties of a lane's target. The last known ones are kept during a loss. */
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
