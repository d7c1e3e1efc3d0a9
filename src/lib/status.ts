import type { Live, LaneSnapshot, LiveState } from '../client';
import { modeName } from './names';

/** How a state is to be looked at. */
export type Tone = 'good' | 'busy' | 'quiet' | 'bad';

/** What a workload is doing, in words. */
export interface StatusWords {
  tone: Tone;
  /** One or two words that change with the state alone. */
  label: string;
  /** What more there is to say; it may change every second. */
  detail?: string;
}

/** Says what is known of a lane now. */
export function describeLive({ state, lane }: Live, name: string): StatusWords {
  switch (state.status) {
    case 'loading':
      return { tone: 'quiet', label: 'Waiting', detail: 'for the load generator' };
    case 'lost':
      return { tone: 'bad', label: 'Load generator lost' };
    case 'live':
      return lane ? describeLane(lane) : { tone: 'bad', label: 'No such lane', detail: noSuchLane(state, name) };
  }
}

function noSuchLane(state: LiveState & { status: 'live' }, name: string): string {
  return `There is no lane “${name}”. There is: ${state.snapshot.lanes.map((l) => l.name).join(', ')}.`;
}

/** Says what a lane is doing. */
export function describeLane(lane: LaneSnapshot): StatusWords {
  const { state } = lane;
  switch (state.phase) {
    case 'stopped':
      return { tone: 'quiet', label: 'Stopped' };
    case 'draining':
      return { tone: 'busy', label: 'Draining', detail: `${conversations(state.concurrency.actual)} left` };
    case 'switching':
      return {
        tone: 'busy',
        label: 'Switching',
        detail: state.mode_change && `to ${modeName(state.mode_change.to.mode)}`,
      };
    case 'running':
      return describeRunning(lane);
  }
}

function describeRunning({ state, baseline }: LaneSnapshot): StatusWords {
  const { actual, target } = state.concurrency;
  if (state.step.settled === undefined) {
    if (actual < target) {
      return { tone: 'busy', label: 'Starting', detail: `${actual} of ${conversations(target)}` };
    }
    const detail =
      actual > target
        ? `${conversations(actual)}, going down to ${target}`
        : 'conversations that began under the earlier settings still run';
    return { tone: 'busy', label: 'Settling', detail };
  }
  if (state.settling) {
    return { tone: 'busy', label: 'Settling', detail: `${Math.ceil(baseline.settling_for_seconds)} s to go` };
  }
  return { tone: 'good', label: 'Running' };
}

function conversations(n: number): string {
  return n === 1 ? '1 conversation' : `${n} conversations`;
}
