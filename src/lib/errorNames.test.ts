/** @jest-environment node */
import { errorList } from './errorNames';

it('lists errors by class in words, the most frequent first, without those that did not occur', () => {
  expect(errorList({ timeout: 1, stall: 1200, connect: 0 })).toBe('1,200 stalled, 1 timed out');
  expect(errorList({})).toBe('');
});
