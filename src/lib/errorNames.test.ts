/** @jest-environment node */
import { errorList, errorName } from './errorNames';

describe('errors in words', () => {
  it('have a name for each class', () => {
    expect(errorName('rate_limited')).toBe('rate limited');
  });

  it('are listed by class, the most frequent first, without those that did not occur', () => {
    expect(errorList({ timeout: 1, stall: 1200, connect: 0 })).toBe('1,200 stalled, 1 timed out');
    expect(errorList({})).toBe('');
  });
});
