import type { BaselineRow, Mode, ModeState, Speculation, State } from '../client';

/** One phase of the demonstration: a routing mode with a kind of speculation. */
export interface Phase {
  /** Its number in the demonstration. */
  id: '1' | '2' | '3a' | '3b';
  mode: Mode;
  speculation: Speculation;
  title: string;
}

/**
 * The phases from a plain deployment to one with every feature enabled, one change at a time. The recorded tables
 * belong to none of them: whether those runs speculated is not recorded.
 */
export const PHASES: readonly Phase[] = [
  { id: '1', mode: 'round_robin', speculation: 'off', title: 'Round-robin, no speculation' },
  { id: '2', mode: 'kv', speculation: 'off', title: 'KV-aware, no speculation' },
  { id: '3a', mode: 'kv', speculation: 'draft', title: 'KV-aware with a draft model' },
  { id: '3b', mode: 'kv', speculation: 'eagle3', title: 'KV-aware with EAGLE-3' },
];

/** Whether the rows report drafted tokens. One token per step means that none were drafted. */
export function hasDrafts(rows: BaselineRow[]): boolean {
  return rows.some(
    ({ acceptance_rate, tokens_per_step = 1 }) => acceptance_rate !== undefined || tokens_per_step !== 1
  );
}

/** Whether a state is that of a phase. */
export function isPhase({ mode, speculation }: Phase, state: ModeState): boolean {
  return state.mode === mode && state.speculation === speculation;
}

/** Whether the mode driver can switch to a phase, or it is in force. */
export function isOffered(phase: Phase, state: Pick<State, 'mode' | 'speculation' | 'modes'>): boolean {
  return isPhase(phase, state) || state.modes.some((offer) => isPhase(phase, offer));
}
