/** @jest-environment node */
import { DASH, directed, gibibytes, milliseconds, number, objective, percent, relative, seconds, span } from './format';

describe('numbers', () => {
  it('are a dash where there is no value', () => {
    for (const write of [number, milliseconds, seconds, percent, gibibytes]) {
      expect(write(undefined)).toBe(DASH);
    }
    expect(objective(undefined)).toBe(DASH);
    expect(number(NaN)).toBe(DASH);
  });

  it('carry their unit', () => {
    expect(number(12345.6, 1)).toBe('12,345.6');
    expect(milliseconds(0.0264)).toBe('26.4 ms');
    expect(milliseconds(0.3747)).toBe('375 ms');
    expect(objective(0.06)).toBe('60 ms');
    expect(objective(0.0255)).toBe('25.5 ms');
    expect(seconds(23.44)).toBe('23.4 s');
    expect(percent(0.9163)).toBe('91.6 %');
    expect(gibibytes(54.3 * 2 ** 30)).toBe('54.3 GiB');
  });
});

describe('a difference', () => {
  it.each([
    [-31.94, 'long', '−31.9 %'],
    [0.04, 'long', '0.0 %'],
    [100, 'long', '+100.0 %'],
    [231, 'long', '3.3 times as long'],
    [150, 'much', '2.5 times as much'],
  ] as const)('of %d %% is written in one way', (change, as, text) => {
    expect(relative(change, as)).toBe(text);
  });

  it('has no word where it rounds to 0', () => {
    expect(directed('0.0 %', 'later')).toBe('0.0 %');
    expect(directed('0.1 %', 'later')).toBe('0.1 % later');
  });
});

describe('span', () => {
  it.each([
    [0.4, '0 s'],
    [59.9, '59 s'],
    [185, '3 min 5 s'],
    [7800, '2 h 10 min'],
  ])('writes %d s as %s', (value, text) => {
    expect(span(value)).toBe(text);
  });
});
