/** @jest-environment node */
import { DASH, gibibytes, milliseconds, number, percent, seconds, span } from './format';

describe('numbers', () => {
  it('are a dash where there is no value', () => {
    for (const write of [number, milliseconds, seconds, percent, gibibytes]) {
      expect(write(undefined)).toBe(DASH);
    }
    expect(number(NaN)).toBe(DASH);
  });

  it('carry their unit', () => {
    expect(number(12345.6, 1)).toBe('12,345.6');
    expect(milliseconds(0.0264)).toBe('26.4 ms');
    expect(milliseconds(0.3747)).toBe('375 ms');
    expect(milliseconds(0.3747, 1)).toBe('374.7 ms');
    expect(seconds(23.44)).toBe('23.4 s');
    expect(percent(0.9163)).toBe('91.6 %');
    expect(gibibytes(54.3 * 2 ** 30)).toBe('54.3 GiB');
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
