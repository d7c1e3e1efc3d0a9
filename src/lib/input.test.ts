/** @jest-environment node */
import { decimalNumber, wholeNumber } from './input';

describe('wholeNumber', () => {
  it.each([
    ['1', true],
    ['50', true],
    ['0', false],
    ['51', false],
    ['2.5', false],
    ['', false],
    [' ', false],
    ['ten', false],
  ])('of "%s" says that it is right: %s', (text, right) => {
    expect(wholeNumber(text, { min: 1, max: 50 })).toBe(right ? undefined : 'A whole number from 1 to 50');
  });
});

describe('decimalNumber', () => {
  it.each([
    ['0', undefined],
    ['0.5', undefined],
    ['10', undefined],
    ['10.1', 'A number from 0 to 10'],
    ['Infinity', 'A number from 0 to 10'],
    ['', 'A number from 0 to 10'],
  ])('of "%s" says: %s', (text, words) => {
    expect(decimalNumber(text, { min: 0, max: 10 })).toBe(words);
  });

  it('can exclude the lower end', () => {
    expect(decimalNumber('0', { min: 0, max: 10, above: true })).toBe('A number above 0, up to 10');
    expect(decimalNumber('0.001', { min: 0, max: 10, above: true })).toBeUndefined();
  });
});
