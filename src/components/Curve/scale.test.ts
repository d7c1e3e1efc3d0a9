/** @jest-environment node */
import { scaleFrom } from './scale';

const texts = (highest: number, steps = 4) => scaleFrom(highest, steps, String).ticks.map(({ text }) => text);

it('goes from 0 in round steps to the first tick that holds the highest value', () => {
  expect(texts(725)).toEqual(['0', '200', '400', '600', '800']);
  expect(texts(800)).toEqual(['0', '200', '400', '600', '800']);
  expect(texts(801)).toEqual(['0', '250', '500', '750', '1000']);
  expect(texts(4100, 2)).toEqual(['0', '2500', '5000']);
  expect(texts(1)).toEqual(['0', '0.25', '0.5', '0.75', '1']);
});

it('has an axis where there is nothing', () => {
  expect(scaleFrom(0, 4, String).max).toBe(1);
  expect(scaleFrom(NaN, 4, String).max).toBe(1);
  expect(scaleFrom(-Infinity, 4, String).max).toBe(1);
});
