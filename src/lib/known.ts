import type { LaneSnapshot, Live, LiveState, Settings, Snapshot } from '../client';

/** The present moment, or the last one that was known. */
export function lastSnapshot(state: LiveState): Snapshot | undefined {
  return state.status === 'live' ? state.snapshot : state.status === 'lost' ? state.last : undefined;
}

/** A lane as it is, or as it was when it was last seen. */
export interface Known {
  lane: LaneSnapshot;
  settings: Settings;
  /** The load generator's clock then. */
  time: string;
}

/** What was last known of a lane: its limits and choices outlive a loss, its figures on the stage alone, dimmed. */
export function lastKnown({ state }: Live, name: string): Known | undefined {
  const snapshot = lastSnapshot(state);
  const lane = snapshot?.lanes.find((l) => l.name === name);
  return snapshot && lane && { lane, settings: snapshot.settings, time: snapshot.time };
}
