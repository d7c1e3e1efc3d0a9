/** @jest-environment node */
import type { State } from '../client';
import { laneSnapshot, live, state, sweepSummary } from '../test/fixtures';
import { describeLane, describeLive } from './status';

const now = '2026-11-20T10:00:00Z';

type Held = NonNullable<State['step']['held']>;

const settling = (concurrency = state().concurrency): Partial<State> => ({
  settling: true,
  concurrency,
  step: { id: 1, started: now, counted: 0 },
});
const held = (by: Held['by'], at: number) => ({ id: 1, started: now, settled: now, held: { by, at }, counted: 9 });

describe('describeLane', () => {
  it.each<[string, Partial<State>, string, string | undefined]>([
    ['stopped', { phase: 'stopped', running: false }, 'Stopped', undefined],
    [
      'between the spans of a trial',
      { phase: 'stopped', running: false, sweep: sweepSummary() },
      'Between spans',
      'of a trial',
    ],
    ['growing', settling({ target: 120, actual: 40 }), 'Starting', '40 of 120 conversations'],
    ['shrinking', settling({ target: 60, actual: 80 }), 'Settling', '80 conversations, decreasing to 60'],
    ['mixed', settling(), 'Settling', 'conversations started with the previous settings are still running'],
    [
      'slowly starting',
      settling({ target: 1000, actual: 260, limited_by: 'start_rate' }),
      'Starting',
      '260 of 1,000 conversations, at least 74 s to go',
    ],
    [
      'slowed',
      settling({ target: 1000, actual: 250, limited_by: 'target_rps' }),
      'Starting',
      '250 of 1,000 conversations, slowed by the cap of 25 requests/s',
    ],
    [
      'held',
      { concurrency: { target: 1000, actual: 262 }, step: held('target_rps', 260) },
      'Running',
      'held at 260 of 1,000 conversations by the cap of 25 requests/s',
    ],
    [
      'held and settling',
      { settling: true, concurrency: { target: 60, actual: 40 }, step: held('start_rate', 40) },
      'Settling',
      'held at 40 of 60 conversations by the start rate of 10 conversations/s, 42 s to go',
    ],
    ['settling', { settling: true }, 'Settling', '42 s to go'],
    ['settled', {}, 'Running', undefined],
    ['settling at a rate', settling({ target: '12/s', actual: 84 }), 'Settling', '12 conversations/s · 84 in progress'],
    [
      'almost settled at a rate',
      { settling: true, concurrency: { target: '12/s', actual: 84 } },
      'Settling',
      '12 conversations/s · 84 in progress, 42 s to go',
    ],
    [
      'settled at a rate',
      { concurrency: { target: '12/s', actual: 1084 } },
      'Running',
      '12 conversations/s · 1,084 in progress',
    ],
    ['draining', { phase: 'draining', concurrency: { target: 120, actual: 1 } }, 'Draining', '1 conversation left'],
  ])('of a %s workload', (_, change, label, detail) => {
    const lane = laneSnapshot({ state: change, baseline: { settling_for_seconds: 41.2 } });
    expect(describeLane(lane)).toMatchObject({ label });
    expect(describeLane(lane).detail).toBe(detail);
  });

  it('names the wait for the first turns, which has no known end', () => {
    const lane = laneSnapshot({ state: { settling: true }, baseline: { settling_for_seconds: 0 } });
    expect(describeLane(lane).detail).toBe('waiting for the first turns');
  });

  it('names the target mode of a switch', () => {
    const [from, to] = (['kv', 'round_robin'] as const).map((mode) => ({ mode, speculation: 'off' as const }));
    const mode_change = { from, to, phase: 'switching', message: 'x', started: now, failed: false };
    const lane = laneSnapshot({ state: { phase: 'switching', mode_change } });
    expect(describeLane(lane)).toEqual({ tone: 'busy', label: 'Switching', detail: 'to Round-robin' });
  });
});

describe('describeLive', () => {
  it('reports what is missing', () => {
    expect(describeLive({ state: { status: 'loading' } }, 'main').label).toBe('Waiting');
    expect(describeLive({ state: { status: 'lost', since: 0, problem: 'x' } }, 'main').tone).toBe('bad');
    expect(describeLive({ state: live().state }, 'twin').detail).toBe('There is no lane “twin”. Lanes: main.');
  });
});
