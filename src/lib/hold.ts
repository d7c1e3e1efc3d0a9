import { type LaneSnapshot, type State, workloadSettings } from '../client';
import { isBelow, progressText } from './level';

/** Returns what holds the load down now; undefined without a limit in effect. */
export function limiterOf(lane: LaneSnapshot): State['concurrency']['limited_by'] {
  const { phase, concurrency, step } = lane.state;
  if (phase !== 'running') {
    return undefined;
  }
  return (isBelow(concurrency.actual, concurrency.target) ? step.held?.by : undefined) ?? concurrency.limited_by;
}

/** Describes where a step stands still below its concurrency; undefined where it does not. */
export function describeHold({ state }: LaneSnapshot): string | undefined {
  const { held } = state.step;
  return state.phase === 'running' && held
    ? `held at ${progressText(held.at, state.concurrency.target)} by ${limitName(held.by, state)}`
    : undefined;
}

/** A limit with its value. */
export function limitName(by: NonNullable<State['concurrency']['limited_by']>, state: State): string {
  return by === 'target_rps'
    ? `the cap of ${state.target_rps} ${workloadSettings.target_rps.unit}`
    : `the start rate of ${state.start_rate} ${workloadSettings.start_rate.unit}`;
}
