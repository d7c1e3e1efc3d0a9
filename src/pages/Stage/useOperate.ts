import { useEffect, useState } from 'react';

import {
  changeMode,
  patchWorkload,
  startWorkload,
  stopWorkload,
  useClient,
  useMe,
  type Live,
  type Me,
  type Mode,
  type ModeRequest,
} from '../../client';
import { useConfirm, type Confirm } from '../../components/Confirm';
import { failures } from '../../components/Controls';
import { useAction } from '../../components/Controls/useAction';
import { useConcurrency } from '../../components/Controls/useConcurrency';
import { modeQuestion, stopQuestion } from '../../lib/losses';
import { speculationFor } from '../../lib/modes';
import { modeName } from '../../lib/names';
import { takenHint, takenTitle } from '../../lib/sweeps';
import { useStable } from '../../lib/useStable';
import { LANE } from '../lane';
import { readOnlyReason } from '../Shell/StartStop';
import { knownOf } from './model';

/** How long it is said why a wish was not fulfilled, in milliseconds: it is for the operator, not for the crowd. */
export const NOTICE = 8000;

/** What may be done from the stage, and how it went. */
export interface Operate {
  /** Who looks; undefined until it is known. */
  me?: Me;
  /** What is in force, or what the operator wants. */
  concurrency?: number;
  /** Starts a workload that is stopped, and stops any other, which the operator confirms where conversations end. */
  startStop(): void;
  /** Takes the concurrency up (1) or down (−1) by the slider's increment, within its range. */
  step(direction: 1 | -1): void;
  /** Asks for a mode, which the operator confirms while the workload runs. */
  ask(request: ModeRequest): void;
  /** Asks for a mode with the speculation that goes with it. */
  askMode(mode: Mode): void;
  /** The question that is open. */
  confirm: Confirm;
  /** Why the last wish was not fulfilled, for a short while. */
  notice?: string;
}

/** Runs the operator's commands from keys and buttons. Without permission, it shows why. */
export function useOperate(live: Live, questionClass?: string): Operate {
  const client = useClient();
  const me = useMe();
  const known = knownOf(live);
  const seenAt = live.state.status === 'live' ? live.state.receivedAt : undefined;
  const command = useAction(seenAt);
  const adjustment = useAction(seenAt);
  const draft = useConcurrency(known?.lane.state.concurrency.target ?? 0, (concurrency) =>
    adjustment.run('concurrency', () => patchWorkload(client, LANE, { concurrency }))
  );
  const confirm = useConfirm(questionClass);
  const [refusal, setRefusal] = useState<string>();

  /** Does it if it may be done now. */
  const operate = (act: (known: NonNullable<ReturnType<typeof knownOf>>) => string | undefined) => {
    command.dismiss();
    adjustment.dismiss();
    const why =
      readOnlyReason(me) ??
      (live.lane && me ? undefined : 'Nothing can be changed while the load generator is unreachable.');
    setRefusal(why ?? (known && act(known)));
  };
  const startStop = () =>
    operate(({ lane: { state } }) => {
      if (command.busy === 'start' || command.busy === 'stop') {
        return undefined; // what was asked for has not come about yet: the same key would take it back
      }
      const start = state.phase === 'stopped' && !state.sweep; // between its spans, too, a stop pauses it
      confirm.before(start ? undefined : stopQuestion(state, false), () => {
        void command.run(start ? 'start' : 'stop', () =>
          start ? startWorkload(client, LANE, { concurrency: draft.take() }) : stopWorkload(client, LANE, false)
        );
      });
      return undefined;
    });
  const step = (direction: 1 | -1) =>
    operate(({ lane: { state }, settings: { slider } }) => {
      if (state.sweep) {
        return `${takenTitle(state.sweep)}. ${takenHint(state.sweep)}`;
      }
      const { value } = draft;
      const wanted = value + direction * slider.increment;
      // A concurrency beyond the slider was set on purpose: a step leads back, never further.
      const next = Math.min(Math.max(slider.max, value), Math.max(Math.min(slider.min, value), wanted));
      if (next === value) {
        return `${value} conversations is the ${direction > 0 ? 'highest' : 'lowest'} value of the slider.`;
      }
      draft.change(next);
      return undefined;
    });
  const ask = (request: ModeRequest) =>
    operate(({ lane: { state } }) => {
      const { arm, mode } = request;
      if (state.sweep) {
        return `${takenTitle(state.sweep)}. ${takenHint(state.sweep)}`;
      }
      const wanted = arm ?? `${modeName(mode ?? 'unknown')} routing`;
      if (!state.modes.some((offer) => (arm === undefined ? offer.mode === mode : offer.arm === arm))) {
        return `The driver “${state.driver}” does not offer ${wanted}.`;
      }
      if (state.mode_change && !state.mode_change.failed) {
        return 'A mode change is in progress.';
      }
      const isSame = arm === undefined ? state.mode === mode : state.arm === arm;
      if (isSame && (request.speculation ?? state.speculation) === state.speculation) {
        return `${wanted} is already active.`;
      }
      confirm.before(modeQuestion(state, request), () => {
        void command.run('mode', () => changeMode(client, LANE, request));
      });
      return undefined;
    });
  const failure = command.failure ?? adjustment.failure;
  const notice = failure ? `${failures[failure.name]}: ${failure.problem.message}` : refusal;
  const forget = useStable(() => {
    setRefusal(undefined);
    command.dismiss();
    adjustment.dismiss();
  });
  useEffect(() => {
    const timer = notice === undefined ? undefined : setTimeout(forget, NOTICE);
    return () => clearTimeout(timer);
  }, [notice, forget]);
  return {
    me,
    concurrency: known && draft.value,
    startStop,
    step,
    ask,
    askMode: (mode) => ask({ mode, speculation: known && speculationFor(mode, known.lane.state) }),
    confirm,
    notice,
  };
}
