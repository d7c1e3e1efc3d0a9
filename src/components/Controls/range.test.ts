/** @jest-environment node */
import { laneSnapshot, settings } from '../../test/fixtures';
import { boundsOf, equivalentLevel, levelAt, rangeAround } from './range';

const slider = { min: 60, max: 180, increment: 10 };

it.each([
  [120, { min: 60, max: 180, step: 10 }],
  [20, { min: 20, max: 180, step: 10 }],
  [25, { min: 20, max: 180, step: 5 }],
  [127, { min: 60, max: 180, step: 1 }],
  [3, { min: 1, max: 180, step: 1 }],
  [400, { min: 60, max: 400, step: 10 }],
  [401, { min: 60, max: 410, step: 1 }],
  [995, { min: 60, max: 998, step: 5 }],
])('reaches to %d, and its steps too', (value, range) => {
  expect(rangeAround([value], slider, { min: 1, max: 998 })).toEqual(range);
  const { min, max, step } = range;
  expect(value).toBeGreaterThanOrEqual(min);
  expect(value).toBeLessThanOrEqual(max);
  expect((value - min) % step).toBe(0); // otherwise a browser would round the thumb's position
});

it('keeps earlier ends', () => {
  expect(rangeAround([100, 20, 180], slider, { min: 1, max: 1000 })).toEqual({ min: 20, max: 180, step: 10 });
});

it('has a position for every value, whatever the settings', () => {
  for (const settings of [slider, { min: 1, max: 10000, increment: 7 }, { min: 5, max: 5, increment: 3 }]) {
    for (let value = 1; value <= 10000; value += 13) {
      const { min, max, step } = rangeAround([value], settings, { min: 1, max: 10000 });
      expect(min >= 1 && min <= value && value <= max && step >= 1 && (value - min) % step === 0).toBe(true);
    }
  }
});

it.each([
  [130, 120, 130], // a key, in the usual range
  [128, 127, 130], // the least move from between two levels
  [126, 127, 120],
  [134, 127, 130], // a drag
  [136, 127, 140],
  [21, 20, 30],
  [1, 10, 1],
  [2, 1, 10], // from below the first level
  [0, 60, 50],
  [999, 180, 190],
])('means by %d, coming from %d, the level %d', (moved, value, level) => {
  const range = { ...rangeAround([value, 1, 190], slider, { min: 1, max: 1000 }) };
  expect(levelAt(moved, value, slider, { ...range, min: moved === 0 ? 50 : range.min })).toBe(level);
});

it.each([
  [12, { min: 0.5, max: 50, step: 0.5 }],
  [0.25, { min: 0.01, max: 50, step: 0.01 }],
  [12.3, { min: 0.5, max: 50, step: 0.1 }],
  [80.2, { min: 0.5, max: 80.5, step: 0.1 }],
])('reaches to a rate of %d', (value, range) => {
  const { slider: rates, limit } = boundsOf('rate', settings());
  expect(rangeAround([value], rates, limit)).toEqual(range);
});

it.each([
  ['rate', { requests: 16, actual: 120 }, '4/s'], // conversations have 4 turns
  ['rate', { requests: 17, actual: 120 }, '4.5/s'],
  ['rate', { requests: 0, actual: 0 }, '0.5/s'],
  ['rate', { requests: 900, actual: 120 }, '50/s'],
  ['conversations', { requests: 16, actual: 84 }, 80],
  ['conversations', { requests: 0, actual: 0 }, 60],
] as const)('begins as %s with about the load of now', (kind, { requests, actual }, level) => {
  const lane = laneSnapshot({ state: { concurrency: { target: 120, actual } } });
  const window = { ...lane.window, requests_per_second: requests };
  expect(equivalentLevel(kind, { ...lane, window }, settings())).toBe(level);
});
