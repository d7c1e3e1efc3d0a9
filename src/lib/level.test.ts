/** @jest-environment node */
import {
  axisOf,
  compareLevels,
  isBelow,
  isWithin,
  kindOf,
  levelOf,
  levelsName,
  levelText,
  levelWords,
  parseLevel,
  progressText,
  rangesOf,
  valueOf,
} from './level';

it.each([
  [1, 'conversations', 1, '1', '1 conversation', '1 of 1 conversation'],
  [1000, 'conversations', 1000, '1,000', '1,000 conversations', '1 of 1,000 conversations'],
  ['1/s', 'rate', 1, '1/s', '1 conversation/s', '1 in progress at 1 conversation/s'],
  ['12/s', 'rate', 12, '12/s', '12 conversations/s', '1 in progress at 12 conversations/s'],
  ['0.5/s', 'rate', 0.5, '0.5/s', '0.5 conversations/s', '1 in progress at 0.5 conversations/s'],
  ['1000/s', 'rate', 1000, '1,000/s', '1,000 conversations/s', '1 in progress at 1,000 conversations/s'],
] as const)('%s is a level with kind, value and unit', (level, kind, value, text, words, progress) => {
  expect([kindOf(level), valueOf(level)]).toEqual([kind, value]);
  expect([levelText(level), levelWords(level), progressText(1, level)]).toEqual([text, words, progress]);
  expect(levelOf(kind, value)).toBe(level);
  expect(parseLevel(String(level))).toBe(level);
});

it('has a dash for a missing level', () => {
  expect(levelText(undefined)).toBe('—');
});

it.each([
  [' 60 ', 60],
  ['012.0/s', '12/s'],
  ['12 /s', '12/s'],
  ['', undefined],
  ['/s', undefined],
  ['60/', undefined],
  ['12/min', undefined],
  ['1e3/s', '1000/s'],
  ['1e3', 1000],
])('reads %j as %j', (text, level) => {
  expect(parseLevel(text)).toBe(level);
});

it('writes the sum of decimal fractions without noise', () => {
  expect(levelOf('rate', 2.3 - 0.5)).toBe('1.8/s');
});

it.each([
  [60, 120, true],
  [120, 60, false],
  [60, 60, false],
  ['9/s', '12/s', true],
  ['12/s', '9/s', false],
  [9, '12/s', false],
  ['12/s', 60, false],
])('%s is below %s: %s', (a, b, below) => {
  expect(isBelow(a, b)).toBe(below);
});

it('sorts by kind, then by value', () => {
  expect(['12/s', 120, '9/s', 60].sort(compareLevels)).toEqual([60, 120, '9/s', '12/s']);
});

it('has a range for each kind', () => {
  const levels = ['12/s', 120, '2.5/s', 60, 90];
  expect(rangesOf(levels)).toEqual([
    [60, 120],
    ['2.5/s', '12/s'],
  ]);
  expect(rangesOf([])).toEqual([]);
  expect([60, 61, 59, '60/s', '2.5/s', '3/s', 10].map((level) => isWithin(level, levels))).toEqual([
    true,
    true,
    false,
    false,
    true,
    true,
    false,
  ]);
});

it('names the levels, and makes an axis of those of one kind', () => {
  expect([levelsName([60]), levelsName(['12/s']), levelsName([60, '12/s'])]).toEqual(['Concurrency', 'Rate', 'Level']);
  expect(axisOf([120, 60, 120])).toEqual({ levels: [60, 120], unit: 'conversations' });
  expect(axisOf(['12/s', '2.5/s'])).toEqual({ levels: [2.5, 12], unit: 'conversations/s' });
});
