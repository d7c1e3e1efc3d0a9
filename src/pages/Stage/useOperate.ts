import { useEffect, useState } from 'react';

import { changeSweep, startSweep, useMe, type Live, type Mode, type ModeRequest } from '../../client';
import { failures, useOperator } from '../../components/Controls';
import { boundsOf } from '../../components/Controls/range';
import type { Known } from '../../lib/known';
import { kindOf, levelOf, levelWords, valueOf } from '../../lib/level';
import { speculationFor } from '../../lib/modes';
import { modeName } from '../../lib/names';
import { sweepHint, sweepInProgress } from '../../lib/sweeps';
import { useStable } from '../../lib/useStable';
import { LANE } from '../lane';
import { readOnlyReason } from '../Shell/StartStop';

/**
 * How long the reason for a refused request is shown, in milliseconds. It is for the operator, not for the audience.
 */
export const NOTICE = 8000;

/** The title of a trial that the stage has begun. Any key of the workload ends it. */
const STAGE_TRIAL = 'On the stage';

/** How long such a trial takes at most, in seconds. */
const STAGE_TRIAL_SECONDS = 600;

/** The actions of the stage, and their results. */
export type Operate = ReturnType<typeof useOperate>;

/** Runs the operator's commands from keys and buttons. Without permission, it shows why. */
export function useOperate(live: Live, questionClass?: string) {
  const me = useMe();
  const { client, known, command, adjustment, draft, confirm, act, change } = useOperator(live, LANE, questionClass);
  const [refusal, refuse] = useState<string>();

  /** Runs an action if it is allowed now. A sweep has the workload, unless the action may pause it. */
  const operate = (run: (known: Known) => void, mayPause = false) => {
    command.dismiss();
    adjustment.dismiss();
    const why =
      readOnlyReason(me) ??
      (live.lane && me ? undefined : 'Nothing can be changed while the load generator is unreachable.');
    refuse(why);
    if (why || !known) {
      return;
    }
    const { sweep } = known.lane.state;
    if (sweep?.request.title === STAGE_TRIAL && sweep.state === 'running') {
      void command.run('endTrial', () => changeSweep(client, sweep.id, 'cancelled'));
    } else if (sweep && !mayPause) {
      refuse(`${sweepInProgress(sweep)}. ${sweepHint(sweep)}`);
    } else {
      run(known);
    }
  };
  /** Starts a stopped workload, and stops any other. The operator confirms it where conversations end. */
  const startStop = () =>
    operate(({ lane: { state } }) => {
      // While a request is pending, the same key would undo it.
      if (command.busy !== 'start' && command.busy !== 'stop') {
        act(state.phase === 'stopped' && !state.sweep ? 'start' : 'stop');
      }
    }, true);
  /** Raises (1) or lowers (−1) the level by the slider's increment, within its range. */
  const step = (direction: 1 | -1) =>
    operate(({ settings }) => {
      const kind = kindOf(draft.value);
      const { slider } = boundsOf(kind, settings);
      const value = valueOf(draft.value);
      const wanted = value + direction * slider.increment;
      // A level beyond the slider was set on purpose. A step leads back, never further.
      const next = Math.min(Math.max(slider.max, value), Math.max(Math.min(slider.min, value), wanted));
      if (next === value) {
        return refuse(`${levelWords(draft.value)} is the ${direction > 0 ? 'highest' : 'lowest'} value of the slider.`);
      }
      draft.change(levelOf(kind, next));
    });
  /** Requests a mode. The operator confirms it while the workload runs. */
  const ask = (request: ModeRequest) =>
    operate(({ lane: { state } }) => {
      const { arm, mode } = request;
      const wanted = arm ?? `${modeName(mode ?? 'unknown')} routing`;
      if (!state.modes.some((offer) => (arm === undefined ? offer.mode === mode : offer.arm === arm))) {
        return refuse(`The driver “${state.driver}” does not offer ${wanted}.`);
      }
      if (state.mode_change && !state.mode_change.failed) {
        return refuse('A mode change is in progress.');
      }
      const isSame = arm === undefined ? state.mode === mode : state.arm === arm;
      if (isSame && (request.speculation ?? state.speculation) === state.speculation) {
        return refuse(`${wanted} is already active.`);
      }
      change(request);
    });
  /** Begins a new step with unchanged settings. */
  const measure = () =>
    operate(({ lane: { state } }) => {
      if (state.phase !== 'running') {
        return refuse('The workload does not run, so there is nothing to measure anew.');
      }
      act('measure');
    });
  /** Begins a trial of the two modes that alternate on the load in progress. */
  const duel = () =>
    operate(({ lane: { state } }) => {
      if (state.phase !== 'running') {
        return refuse('The workload does not run; a trial goes on with it.');
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
    });
  const failure = command.failure ?? adjustment.failure;
  const notice = failure ? `${failures[failure.name]}: ${failure.problem.message}` : refusal;
  const forget = useStable(() => {
    refuse(undefined);
    command.dismiss();
    adjustment.dismiss();
  });
  useEffect(() => {
    const timer = notice === undefined ? undefined : setTimeout(forget, NOTICE);
    return () => clearTimeout(timer);
  }, [notice, forget]);
  return {
    me,
    /** The level in force, or the requested one. */
    concurrency: known && draft.value,
    startStop,
    step,
    ask,
    /** Requests a mode with its speculation. */
    askMode: (mode: Mode) => ask({ mode, speculation: known && speculationFor(mode, known.lane.state) }),
    measure,
    duel,
    confirm,
    /** Why the last request was refused, for a short while. */
    notice,
  };
}
