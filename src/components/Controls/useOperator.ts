import {
  changeMode,
  measureAnew,
  patchWorkload,
  startWorkload,
  stopWorkload,
  useClient,
  type Live,
  type ModeRequest,
} from '../../client';
import { arrivalOf, lastKnown } from '../../lib/known';
import { modeQuestion, stopQuestion } from '../../lib/losses';
import { useStable } from '../../lib/useStable';
import { useConfirm } from '../Confirm';
import type { Command } from './Buttons';
import { useAction } from './useAction';
import { useConcurrency } from './useConcurrency';

/** The requests of an operator, wherever its controls are. */
export type Operator = ReturnType<typeof useOperator>;

/** Runs an operator's requests to a lane. What loses something is confirmed first, in a dialog of this class. */
export function useOperator(live: Live, lane: string, dialogClass?: string) {
  const client = useClient();
  const known = lastKnown(live, lane);
  const seenAt = arrivalOf(live);
  const command = useAction(seenAt);
  const adjustment = useAction(seenAt);
  const draft = useConcurrency(known?.lane.state.concurrency.target ?? 0, (concurrency) =>
    adjustment.run('concurrency', () => patchWorkload(client, lane, { concurrency }))
  );
  const confirm = useConfirm(dialogClass);
  const act = useStable((name: Command) => {
    const stops = name === 'stop' || name === 'drain';
    const calls = {
      start: () => startWorkload(client, lane, { concurrency: draft.take() }),
      stop: () => stopWorkload(client, lane, false),
      drain: () => stopWorkload(client, lane, true),
      measure: () => measureAnew(client, lane),
    };
    confirm.before(stops && known ? stopQuestion(known.lane.state, name === 'drain') : undefined, () =>
      command.run(name, calls[name])
    );
  });
  const change = useStable((request: ModeRequest) =>
    confirm.before(known && modeQuestion(known.lane.state, request), () =>
      command.run('mode', () => changeMode(client, lane, request))
    )
  );
  return { client, known, command, adjustment, draft, confirm, act, change };
}

/** The failures, by the name of the request. */
export const failures: Record<string, string> = {
  start: 'The workload was not started',
  stop: 'The workload was not stopped',
  drain: 'The workload was not drained',
  measure: 'The measurement was not begun anew',
  duel: 'The trial was not started',
  endTrial: 'The trial was not ended',
  concurrency: 'The concurrency was not changed',
  workload: 'The workload was not changed',
  mode: 'The mode was not changed',
  say: 'The routing mode was not set',
  confirm: 'The confirmation failed',
  cancel: 'The mode change was not cancelled',
};
