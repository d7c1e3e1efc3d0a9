/** @jest-environment node */
import { sloLevel } from './slo';

describe('sloLevel', () => {
  it.each([
    [0.539, 'met'],
    [0.54, 'near'],
    [0.6, 'near'], // met at the threshold itself
    [0.6001, 'missed'],
  ])('says of %d s that it is %s', (value, level) => {
    expect(sloLevel(value, 0.6)).toBe(level);
  });

  it.each([
    [0.605, 0.004, false, 'missed'],
    [0.605, 0.005, false, 'withheld'], // the true value may meet the objective
    [0.595, 0.01, false, 'near'], // the true value can only be lower
    [0.595, 0.004, true, 'near'],
    [0.595, 0.01, true, 'withheld'],
  ])('says of %d s, %d of which may be the load generator’s own, %s', (value, error, bothWays, level) => {
    expect(sloLevel(value, 0.6, error, bothWays)).toBe(level);
  });

  it('is missed where more than 5 % of the turns failed', () => {
    expect(sloLevel(0.1, 0.6, 0, false, 0.06)).toBe('missed');
    expect(sloLevel(0.1, 0.6, 0, false, 0.05)).toBe('met');
  });

  it('has no level without a value or a threshold', () => {
    expect(sloLevel(undefined, 0.6)).toBeUndefined();
    expect(sloLevel(0.1, undefined)).toBeUndefined();
    expect(sloLevel(0.1, 0)).toBeUndefined();
  });
});
