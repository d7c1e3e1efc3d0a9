import { replaceEqualDeep } from '@tanstack/react-query';
import { distinctUntilChanged, map, merge, type Observable, of, scan, startWith, switchMap, timer } from 'rxjs';

import type { LiveState, Snapshot } from './types';

/** How long a snapshot counts as live without a successor, in milliseconds. */
export const STALE_AFTER = 3500;

/** A message of a source: a snapshot, or the reason why there is none. */
export type Message = { snapshot: Snapshot } | { problem: string; since?: number };

/**
 * Turns messages into the live state. Silence counts as a loss, so that a source that hangs leaves no old number on the
 * screen. Parts of a snapshot that did not change keep their identity.
 */
export function toLiveState(messages: Observable<Message>, now: () => number = Date.now): Observable<LiveState> {
  const silence = timer(STALE_AFTER).pipe(
    map((): Message => ({
      problem: 'No data from the load generator for several seconds.',
      since: now() - STALE_AFTER,
    }))
  );
  return messages.pipe(
    startWith(undefined),
    switchMap((message) => (message === undefined ? silence : merge(of(message), silence))),
    scan((state: LiveState, message) => reduceMessage(state, message, now()), { status: 'loading' }),
    startWith<LiveState>({ status: 'loading' }),
    distinctUntilChanged()
  );
}

function reduceMessage(state: LiveState, message: Message, now: number): LiveState {
  if ('snapshot' in message) {
    return { status: 'live', snapshot: replaceEqualDeep(lastOf(state), message.snapshot), receivedAt: now };
  }
  if (state.status === 'lost') {
    return state.problem === message.problem ? state : { ...state, problem: message.problem };
  }
  return { status: 'lost', since: message.since ?? now, problem: message.problem, last: lastOf(state) };
}

function lastOf(state: LiveState): Snapshot | undefined {
  switch (state.status) {
    case 'live':
      return state.snapshot;
    case 'lost':
      return state.last;
    default:
      return undefined;
  }
}
