import { useEffect, useState } from 'react';

import {
  changeMode,
  changeSweep,
  measureAnew,
  patchWorkload,
  startSweep,
  startWorkload,
  stopWorkload,
  useClient,
  useMe,
  type Live,
  type Me,
  type Mode,
  type ModeRequest,
  type SweepSummary,
} from '../../client';
import { useConfirm, type Confirm } from '../../components/Confirm';
import { failures } from '../../components/Controls';
import { boundsOf } from '../../components/Controls/range';
import { useAction } from '../../components/Controls/useAction';
import { useConcurrency } from '../../components/Controls/useConcurrency';
import { arrivalOf } from '../../lib/known';
import { kindOf, levelOf, levelWords, valueOf, type Level } from '../../lib/level';
import { modeQuestion, stopQuestion } from '../../lib/losses';
import { speculationFor } from '../../lib/modes';
import { modeName } from '../../lib/names';
import { sweepHint, sweepInProgress } from '../../lib/sweeps';
import { useStable } from '../../lib/useStable';
import { LANE } from '../lane';
import { readOnlyReason } from '../Shell/StartStop';
import { knownOf } from './model';

/**
 * How long the reason for a refused request is shown, in milliseconds. It is for the operator, not for the audience.
 */
export const NOTICE = 8000;

/** The title of a trial that the stage has begun. Any key of the workload ends it. */
export const STAGE_TRIAL = 'On the stage';

/** How long such a trial takes at most, in seconds. */
const STAGE_TRIAL_SECONDS = 600;

/** The actions of the stage, and their results. */
export interface Operate {
  /** The current user; undefined until it is known. */
  me?: Me;
  /** The level in force, or the requested one. */
  concurrency?: Level;
  /** Starts a stopped workload, and stops any other. The operator confirms it where conversations end. */
  startStop(): void;
  /** Raises (1) or lowers (−1) the level by the slider's increment, within its range. */
  step(direction: 1 | -1): void;
  /** Requests a mode. The operator confirms it while the workload runs. */
  ask(request: ModeRequest): void;
  /** Requests a mode with its speculation. */
  askMode(mode: Mode): void;
  /** Begins a new step with unchanged settings. */
  measure(): void;
  /** Begins a trial of the two modes that alternate on the load in progress, and ends it before its time. */
  duel(): void;
  /** The open confirmation. */
  confirm: Confirm;
  /** Why the last request was refused, for a short while. */
  notice?: string;
}

/** Runs the operator's commands from keys and buttons. Without permission, it shows why. */
export function useOperate(live: Live, questionClass?: string): Operate {
  const client = useClient();
  const me = useMe();
  const known = knownOf(live);
  const seenAt = arrivalOf(live);
  const command = useAction(seenAt);
  const adjustment = useAction(seenAt);
  const draft = useConcurrency(known?.lane.state.concurrency.target ?? 0, (concurrency) =>
    adjustment.run('concurrency', () => patchWorkload(client, LANE, { concurrency }))
  );
  const confirm = useConfirm(questionClass);
  const [refusal, setRefusal] = useState<string>();

  /** Runs an action if it is allowed now. */
  const operate = (act: (known: NonNullable<ReturnType<typeof knownOf>>) => string | undefined) => {
    command.dismiss();
    adjustment.dismiss();
    const why =
      readOnlyReason(me) ??
      (live.lane && me ? undefined : 'Nothing can be changed while the load generator is unreachable.');
    setRefusal(why ?? (known && act(known)));
  };
  /** Ends a trial of the stage; returns why any other sweep keeps the workload. */
  const endTrial = (sweep: SweepSummary): string | undefined => {
    if (sweep.request.title !== STAGE_TRIAL || sweep.state !== 'running') {
      return takenText(sweep);
    }
    void command.run('endTrial', () => changeSweep(client, sweep.id, 'cancelled'));
    return undefined;
  };
  const startStop = () =>
    operate(({ lane: { state } }) => {
      if (state.sweep?.request.title === STAGE_TRIAL && state.sweep.state === 'running') {
        return endTrial(state.sweep);
      }
      if (command.busy === 'start' || command.busy === 'stop') {
        return undefined; // a request is pending: the same key would undo it
      }
      const start = state.phase === 'stopped' && !state.sweep; // a sweep between its spans, too, is paused by Stop
      confirm.before(start ? undefined : stopQuestion(state, false), () => {
        void command.run(start ? 'start' : 'stop', () =>
          start ? startWorkload(client, LANE, { concurrency: draft.take() }) : stopWorkload(client, LANE, false)
        );
      });
      return undefined;
    });
  const step = (direction: 1 | -1) =>
    operate(({ lane: { state }, settings }) => {
      if (state.sweep) {
        return endTrial(state.sweep);
      }
      const kind = kindOf(draft.value);
      const { slider } = boundsOf(kind, settings);
      const value = valueOf(draft.value);
      const wanted = value + direction * slider.increment;
      // A level beyond the slider was set on purpose. A step leads back, never further.
      const next = Math.min(Math.max(slider.max, value), Math.max(Math.min(slider.min, value), wanted));
      if (next === value) {
        return `${levelWords(draft.value)} is the ${direction > 0 ? 'highest' : 'lowest'} value of the slider.`;
      }
      draft.change(levelOf(kind, next));
      return undefined;
    });
  const ask = (request: ModeRequest) =>
    operate(({ lane: { state } }) => {
      const { arm, mode } = request;
      if (state.sweep) {
        return endTrial(state.sweep);
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
  const measure = () =>
    operate(({ lane: { state } }) => {
      if (state.sweep) {
        return endTrial(state.sweep);
      }
      if (state.phase !== 'running') {
        return 'The workload does not run, so there is nothing to measure anew.';
      }
      void command.run('measure', () => measureAnew(client, LANE));
      return undefined;
    });
  const duel = () =>
    operate(({ lane: { state } }) => {
      if (state.sweep) {
        return endTrial(state.sweep);
      }
      if (state.phase !== 'running') {
        return 'The workload does not run; a trial goes on with it.';
      }
      const arms = state.modes.filter(({ arm }) => arm !== undefined).slice(0, 2);
      void command.run('duel', () =>
        startSweep(client, LANE, {
          kind: 'trial',
          title: STAGE_TRIAL,
          modes: arms.length > 0 ? arms : undefined,
          levels: [state.concurrency.target],
          caches: 'warm',
          max_time: STAGE_TRIAL_SECONDS,
        })
      );
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
    measure,
    duel,
    confirm,
    notice,
  };
}

/** Returns why a workload cannot be changed by hand. */
function takenText(sweep: SweepSummary): string {
  return `${sweepInProgress(sweep)}. ${sweepHint(sweep)}`;
}
