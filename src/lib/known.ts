import type { LaneSnapshot, Live, LiveState, Settings, Snapshot } from '../client';

/** The present moment, or the last one that was known. */
export function lastSnapshot(state: LiveState): Snapshot | undefined {
  return state.status === 'live' ? state.snapshot : state.status === 'lost' ? state.last : undefined;
}

/** The time at which the present snapshot arrived, in milliseconds since 1970. */
export function arrivalOf({ state }: Live): number | undefined {
  return state.status === 'live' ? state.receivedAt : undefined;
}

/** A lane's current or last known state. */
export interface Known {
  lane: LaneSnapshot;
  settings: Settings;
  /** The load generator's clock at that time. */
  time: string;
}

/**
 * Returns the last known state of a lane. Its limits and choices are kept during a loss. Its figures are kept on the
 * stage only, dimmed.
 */
export function lastKnown({ state }: Live, name: string): Known | undefined {
  const snapshot = lastSnapshot(state);
  const lane = snapshot?.lanes.find((l) => l.name === name);
  return snapshot && lane && { lane, settings: snapshot.settings, time: snapshot.time };
}
