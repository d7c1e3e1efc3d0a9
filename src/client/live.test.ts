/** @jest-environment node */
import { Subject } from 'rxjs';

import { snapshot } from '../test/fixtures';
import { STALE_AFTER, toLiveState, type Message } from './live';
import type { LiveState } from './types';

const shown = snapshot();
const silent = 'No data from the load generator for several seconds.';

beforeEach(() => {
  jest.useFakeTimers({ now: 0 });
});

afterEach(() => jest.useRealTimers());

/** Follows messages and records each state with the time of its arrival. */
function follow() {
  const messages = new Subject<Message>();
  const states: Array<[number, LiveState]> = [];
  const subscription = toLiveState(messages).subscribe((state) => states.push([Date.now(), state]));
  return { messages, states, stop: () => subscription.unsubscribe() };
}

describe('toLiveState', () => {
  it('is live with every snapshot, and has the time of its arrival', () => {
    const { messages, states, stop } = follow();
    for (let i = 0; i < 10; i++) {
      jest.advanceTimersByTime(1000);
      messages.next({ snapshot: shown });
    }
    expect(states[0]).toEqual([0, { status: 'loading' }]);
    expect(states.slice(1)).toEqual(
      Array.from({ length: 10 }, (_, i) => [
        1000 * (i + 1),
        { status: 'live', snapshot: shown, receivedAt: 1000 * (i + 1) },
      ])
    );
    stop();
  });

  it('is lost when the source falls silent, since its last message', () => {
    const { messages, states, stop } = follow();
    jest.advanceTimersByTime(1000);
    messages.next({ snapshot: shown });
    jest.advanceTimersByTime(60_000);
    expect(states.slice(2)).toEqual([
      [1000 + STALE_AFTER, { status: 'lost', since: 1000, problem: silent, last: shown }],
    ]);
    stop();
  });

  it('is lost when the source never sends', () => {
    const { states, stop } = follow();
    jest.advanceTimersByTime(60_000);
    expect(states).toEqual([
      [0, { status: 'loading' }],
      [STALE_AFTER, { status: 'lost', since: 0, problem: silent }],
    ]);
    stop();
  });

  it('keeps the time of the loss and the last snapshot while the reason changes, and repeats nothing', () => {
    const { messages, states, stop } = follow();
    messages.next({ snapshot: shown });
    for (const problem of ['refused', 'refused', 'wrong token']) {
      jest.advanceTimersByTime(1000);
      messages.next({ problem });
    }
    const lost = { status: 'lost', since: 1000, last: shown };
    expect(states.slice(2)).toEqual([
      [1000, { ...lost, problem: 'refused' }],
      [3000, { ...lost, problem: 'wrong token' }],
    ]);
    stop();
  });

  it('is live again with the next snapshot', () => {
    const { messages, states, stop } = follow();
    messages.next({ problem: 'refused' });
    jest.advanceTimersByTime(20);
    messages.next({ snapshot: shown });
    expect(states[states.length - 1]).toEqual([20, { status: 'live', snapshot: shown, receivedAt: 20 }]);
    stop();
  });

  it('keeps the parts of a snapshot that did not change', () => {
    const { messages, states, stop } = follow();
    messages.next({ snapshot: snapshot() });
    messages.next({ problem: 'refused' });
    messages.next({ snapshot: snapshot({}, { time: '2026-11-20T10:00:01Z' }) });
    const [first, second] = states.flatMap(([, s]) => (s.status === 'live' ? [s.snapshot] : []));
    expect(second.time).not.toBe(first.time);
    expect(second.lanes).toBe(first.lanes);
    stop();
  });

  it('leaves no timer behind', () => {
    const { messages, stop } = follow();
    messages.next({ snapshot: shown });
    stop();
    expect(jest.getTimerCount()).toBe(0);
  });
});
