import { laneSnapshot, snapshot } from '../test/fixtures';
import { describeLane, describeLive } from './status';

const now = '2026-11-20T10:00:00Z';

describe('describeLane', () => {
  it.each([
    ['stopped', { phase: 'stopped' as const, running: false }, 'Stopped', undefined],
    [
      'growing',
      { settling: true, concurrency: { target: 120, actual: 40 }, step: { id: 1, started: now, counted: 0 } },
      'Starting',
      '40 of 120 conversations',
    ],
    [
      'shrinking',
      { settling: true, concurrency: { target: 60, actual: 80 }, step: { id: 1, started: now, counted: 0 } },
      'Settling',
      '80 conversations, going down to 60',
    ],
    [
      'mixed',
      { settling: true, step: { id: 1, started: now, counted: 0 } },
      'Settling',
      'conversations that began under the earlier settings still run',
    ],
    ['settling', { settling: true }, 'Settling', '42 s to go'],
    ['settled', {}, 'Running', undefined],
    [
      'draining',
      { phase: 'draining' as const, concurrency: { target: 120, actual: 1 } },
      'Draining',
      '1 conversation left',
    ],
  ])('of a %s workload', (_, state, label, detail) => {
    const lane = laneSnapshot({ state, baseline: { settling_for_seconds: 41.2 } });
    expect(describeLane(lane)).toMatchObject({ label });
    expect(describeLane(lane).detail).toBe(detail);
  });

  it('names the mode that it switches to', () => {
    const change = {
      from: { mode: 'kv' as const, speculation: 'off' as const },
      to: { mode: 'round_robin' as const, speculation: 'off' as const },
      phase: 'switching',
      message: 'x',
      started: now,
      failed: false,
    };
    const lane = laneSnapshot({ state: { phase: 'switching', mode_change: change } });
    expect(describeLane(lane)).toEqual({ tone: 'busy', label: 'Switching', detail: 'to Round-robin' });
  });
});

describe('describeLive', () => {
  it('says what is missing', () => {
    expect(describeLive({ state: { status: 'loading' } }, 'main').label).toBe('Waiting');
    expect(describeLive({ state: { status: 'lost', since: 0, problem: 'x' } }, 'main').tone).toBe('bad');
    const state = { status: 'live' as const, snapshot: snapshot(), receivedAt: 0 };
    expect(describeLive({ state }, 'twin').detail).toBe('There is no lane “twin”. There is: main.');
  });
});
