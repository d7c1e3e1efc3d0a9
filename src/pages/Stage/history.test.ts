/** @jest-environment node */
import type { HistoryPoint } from '../../client';
import { laneSnapshot } from '../../test/fixtures';
import { ceilingOf, changesOf, linesOf, merge, pointOf, SPAN, spanOf, withPoint } from './history';

const T0 = Date.parse('2026-11-20T10:00:00Z');

const point = (second: number, change: Partial<HistoryPoint> = {}): HistoryPoint => ({
  time: new Date(T0 + 1000 * second).toISOString(),
  running: true,
  concurrency: 120,
  mode: 'kv',
  speculation: 'off',
  ttft_p95: 0.5,
  output_tokens_per_second: 3000 + second,
  ...change,
});
const points = (from: number, to: number, change: Partial<HistoryPoint> = {}) =>
  Array.from({ length: to - from + 1 }, (_, i) => point(from + i, change));
const seconds = (list: HistoryPoint[]) => list.map(({ time }) => (Date.parse(time) - T0) / 1000);

describe('the history', () => {
  it('has a point a second, for ten minutes', () => {
    const full = points(0, 700).reduce<HistoryPoint[]>(withPoint, []);
    expect(seconds(full)[0]).toBe(700 - SPAN / 1000);
    expect(full).toHaveLength(601);
    expect(withPoint(full, point(700.3))).toBe(full);
  });

  it('has the load generator’s points where they exist, and observed ones elsewhere', () => {
    const seen = [...points(0, 3, { ttft_p95: 9 }), ...points(20, 22, { ttft_p95: 9 })];
    const merged = merge(seen, points(2, 20));
    expect(seconds(merged)).toEqual([0, 1, ...Array.from({ length: 19 }, (_, i) => i + 2), 21, 22]);
    expect(merged.map(({ ttft_p95 }) => ttft_p95)).toEqual([9, 9, ...Array(19).fill(0.5), 9, 9]);
    expect(merge(seen, [])).toBe(seen);
  });

  it('has no figure of a workload that does not run', () => {
    const stopped = laneSnapshot({ state: { running: false, phase: 'stopped' } });
    expect(pointOf('2026-11-20T10:00:00Z', stopped)).toMatchObject({ running: false, concurrency: 120 });
    expect(pointOf('2026-11-20T10:00:00Z', stopped).output_tokens_per_second).toBeUndefined();
    expect(pointOf('2026-11-20T10:00:00Z', laneSnapshot()).output_tokens_per_second).toBe(3168);
  });
});

describe('the curve', () => {
  it('has a line for each mode, and a gap where there was no answer', () => {
    const all = [...points(0, 1, { mode: 'round_robin' }), ...points(2, 3), ...points(60, 60)];
    const [rr, kv] = linesOf(all, 'ttft_p95');
    expect([rr.tone, kv.tone]).toEqual(['round_robin', 'kv']);
    expect(rr.points.map(([, y]) => y)).toEqual([0.5, 0.5, undefined]);
    expect(kv.points.map(([x, y]) => [(x - T0) / 1000, y])).toEqual([
      [2, 0.5],
      [3, 0.5],
      [3.001, undefined],
      [60, 0.5],
    ]);
  });

  it('is gray and dotted until a step has settled', () => {
    const all = [...points(0, 1, { settling: true, ttft_p95: 1.9 }), ...points(2, 3)];
    const [kv, settling] = linesOf(all, 'ttft_p95');
    expect(kv.points.map(([, y]) => y)).toEqual([0.5, 0.5]);
    expect(settling).toMatchObject({ name: 'settling', tone: 'unknown', look: 'dotted' });
    expect(settling.points.map(([, y]) => y)).toEqual([1.9, 1.9, undefined]);
    expect(linesOf(points(0, 3), 'ttft_p95')).toHaveLength(1);
    const { settling: own } = pointOf('2026-11-20T10:00:00Z', laneSnapshot({ state: { settling: true } }));
    expect(own).toBe(true);
  });

  it.each([
    ['settled values', [...points(0, 50, { settling: true, ttft_p95: 1.9 }), ...points(51, 99)], 0.75],
    ['the higher one of two modes', [...points(0, 9, { mode: 'round_robin', ttft_p95: 2 }), ...points(10, 99)], 3],
    ['values without a stall', [...points(0, 80), ...points(81, 95, { ttft_p95: 9 }), ...points(96, 99)], 0.75],
    ['the newest value', [...points(0, 95), ...points(96, 99, { ttft_p95: 9 })], 9],
    ['all values, before any step has settled', points(0, 9, { settling: true }), undefined],
  ])('has an axis that holds %s', (_, all, top) => {
    expect(ceilingOf(all, 'ttft_p95')).toBe(top);
  });

  it('marks every change of mode, and of speculation', () => {
    const all = [
      ...points(0, 2),
      ...points(3, 5, { mode: 'round_robin' }),
      ...points(6, 7),
      ...points(8, 9, { speculation: 'eagle3' }),
    ];
    expect(changesOf(all).map(({ at, text, tone }) => [(at - T0) / 1000, text, tone])).toEqual([
      [3, '→ Round-robin', 'round_robin'],
      [6, '→ KV-aware', 'kv'],
      [8, '→ EAGLE-3', 'kv'],
    ]);
  });

  it('names arms, also those of one mode', () => {
    const arm = (name: string, from: number) => points(from, from + 1, { arm: name, mode: 'unknown' });
    const all = [...arm('cache-aware', 0), ...arm('p2c', 2)];
    expect(linesOf(all, 'ttft_p95', 'solid', 'p95').map(({ name }) => name)).toEqual(['cache-aware p95', 'p2c p95']);
    expect(changesOf(all).map(({ text }) => text)).toEqual(['→ p2c']);
    expect(pointOf('2026-11-20T10:00:00Z', laneSnapshot({ state: { arm: 'p2c' } })).arm).toBe('p2c');
  });

  it('spans ten minutes, or what there is of them', () => {
    expect(spanOf(points(0, 900), T0 + 900_000)).toEqual({ from: T0 + 300_000, to: T0 + 900_000 });
    expect(spanOf(points(0, 300), T0 + 300_000)).toEqual({ from: T0, to: T0 + 300_000 });
    expect(spanOf(points(0, 30), T0 + 30_000)).toEqual({ from: T0 - 90_000, to: T0 + 30_000 });
    expect(spanOf([], T0)).toEqual({ from: T0 - 120_000, to: T0 });
  });
});
