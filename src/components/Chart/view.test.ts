/** @jest-environment node */
import { MS } from '../../lib/format';
import type { ChartLine } from './types';
import { readAt, readingText, runsAbove, summary, toData, viewOf, type Drawing } from './view';

const kv: ChartLine = {
  key: 'kv',
  name: 'KV-aware',
  tone: 'kv',
  points: [
    [60, 0.2],
    [100, undefined],
    [180, 0.4],
  ],
};
const rr: ChartLine = {
  key: 'rr',
  name: 'Round-robin',
  tone: 'round_robin',
  points: [
    [60, 0.5],
    [120, 3],
  ],
};
const drawing: Drawing = {
  x: { levels: [60, 100, 120, 180], unit: 'conversations' },
  lines: [kv, rr],
  bands: [
    {
      of: 'kv',
      tone: 'kv',
      points: [
        [60, 0.18, 0.22],
        [180, 0.4, 0.4],
      ],
    },
  ],
  format: MS,
  slo: 0.6,
};

describe('the data', () => {
  it('has all positions, null in a gap, and undefined where only another line has a value', () => {
    expect(toData([kv, rr])).toEqual([
      [60, 100, 120, 180],
      [0.2, null, undefined, 0.4],
      [0.5, undefined, 3, undefined],
    ]);
  });

  it('has null where only other lines have bars', () => {
    expect(toData([{ ...kv, look: 'bars' }, rr])[1]).toEqual([0.2, null, null, 0.4]);
  });
});

describe('the view', () => {
  it('holds all values and the objective', () => {
    expect(viewOf(drawing, 4)).toMatchObject({ y: { min: 0, max: 3 }, stops: [0, 2, 3], isCut: false });
    expect(viewOf({ ...drawing, slo: 9 }, 4).y.max).toBe(10);
  });

  it('has the axis of the part that is zoomed', () => {
    expect(viewOf(drawing, 4, [150, 190])).toMatchObject({ shown: [150, 190], y: { max: 0.8 } });
  });

  it('is limited where values grow too large, and is marked as cut', () => {
    expect(viewOf({ ...drawing, ceiling: 1 }, 4)).toMatchObject({ y: { max: 1 }, isCut: true });
    expect(viewOf({ ...drawing, ceiling: 1 }, 4, [60, 180])).toMatchObject({ y: { max: 3 }, isCut: false });
    const points: ChartLine['points'] = [5, 1, 3, 4, undefined, 6].map((y, x) => [x, y]);
    expect(runsAbove(points, 2)).toEqual([
      [0, 0],
      [2, 3],
      [5, 5],
    ]);
  });

  it('has a margin beside the first and the last level, and none beside moments', () => {
    expect(viewOf(drawing, 4).shown).toEqual([60 - 3.6, 180 + 3.6]);
    expect(viewOf({ ...drawing, x: { levels: [60] } }, 4).shown).toEqual([59, 61]);
    const bars = { ...drawing, x: { levels: [1, 2, 3] }, lines: [{ ...kv, look: 'bars' as const }] };
    expect(viewOf(bars, 4).shown).toEqual([0.5, 3.5]);
    expect(viewOf({ ...drawing, x: { from: 5, to: 9 } }, 4).shown).toEqual([5, 9]);
  });
});

describe('the descriptions', () => {
  it('are of a level, with its values and their bands', () => {
    const view = viewOf(drawing, 4);
    expect(readingText(view, 0)).toBe('60 conversations; KV-aware 200 ms (180–220); Round-robin 500 ms');
    expect(readingText(view, 1)).toBe('100 conversations; —');
    expect(readingText(view, 3)).toBe('180 conversations; KV-aware 400 ms');
  });

  it('are of a moment, with the value of another lane nearby', () => {
    const line = (key: string, x: number): ChartLine => ({ ...kv, key, points: [[x, 0.1]] });
    const moments = (gap: number) =>
      viewOf({ x: { from: 0, to: 9000 }, lines: [line('a', 4000), line('b', 4000 + gap)], format: MS }, 4);
    expect(readAt(moments(300), 0).map(({ line: { key } }) => key)).toEqual(['a', 'b']);
    expect(readAt(moments(3000), 0).map(({ line: { key } }) => key)).toEqual(['a']);
  });

  it('contain the highest and the last values, the objective and the marks', () => {
    const marks = [{ at: 120, text: 'held' }];
    expect(summary(viewOf({ ...drawing, marks }, 4))).toBe(
      ', at most 3,000 ms; last 180 conversations; KV-aware 400 ms; SLO 600 ms; 120 conversations held'
    );
    expect(summary(viewOf({ ...drawing, lines: [], slo: undefined }, 4))).toBe(', not measured');
  });
});
