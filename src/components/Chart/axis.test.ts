/** @jest-environment node */
import { MS, PERCENT } from '../../lib/format';
import { apart, axisFrom } from './axis';

const texts = (highest: number, steps: number, format = {}) =>
  axisFrom(highest, steps, format).ticks.map(({ text }) => text);

it.each([
  ['round steps up to the first tick that holds the highest value', 725, 4, {}, ['0', '200', '400', '600', '800']],
  ['the highest value on the last tick', 800, 4, {}, ['0', '200', '400', '600', '800']],
  ['one above it', 801, 4, {}, ['0', '250', '500', '750', '1,000']],
  ['few steps', 4100, 2, {}, ['0', '2,500', '5,000']],
  ['whole steps for counts', 1, 4, {}, ['0', '1']],
  ['whole steps for few counts', 7, 4, {}, ['0', '2', '4', '6', '8']],
  ['steps as fine as the values are written', 1.3, 4, { decimals: 1 }, ['0.0', '0.5', '1.0', '1.5']],
  ['seconds in milliseconds', 0.0095, 4, MS, ['0.0 ms', '2.5 ms', '5.0 ms', '7.5 ms', '10.0 ms']],
  ['ratios in per cent', 0.93, 4, PERCENT, ['0 %', '25 %', '50 %', '75 %', '100 %']],
])('the axis has %s', (_, highest, steps, format, expected) => {
  expect(texts(highest, steps, format)).toEqual(expected);
});

it('begins at the last tick below its floor', () => {
  const { min, max, ticks } = axisFrom(0.242, 5, MS, 0.196);
  expect([min, max]).toEqual([0.19, 0.25]);
  expect(ticks.map(({ text }) => text)).toEqual(['190 ms', '200 ms', '210 ms', '220 ms', '230 ms', '240 ms', '250 ms']);
});

it('has an axis without values', () => {
  expect(axisFrom(0, 4, {}).max).toBe(1);
  expect(axisFrom(NaN, 4, {}).max).toBe(1);
  expect(axisFrom(-Infinity, 4, {}).max).toBe(1);
});

it('labels as many levels as fit', () => {
  expect(apart([40, 50, 60, 100, 200, 240], 28)).toEqual([40, 100, 200, 240]);
});
