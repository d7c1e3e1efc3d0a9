/** @jest-environment node */
import { paired, twin } from './fixtures';
import { differenceWords, intervalWords, sideNames, standing } from './model';

const names = { a: 'KV-aware', b: 'Round-robin' };

describe('a paired difference', () => {
  it.each([
    [paired(), 'a', 'Round-robin is 120 ms slower.', '+100 ms to +140 ms'],
    [
      paired({ difference: -0.05, interval: [-0.06, -0.04] }),
      'b',
      'Round-robin is 50.0 ms faster.',
      '−60.0 ms to −40.0 ms',
    ],
    [
      paired({ interval: [-0.01, 0.25] }),
      'same',
      'Not certain: chance could explain the difference.',
      '−10.0 ms to +250 ms',
    ],
    [paired({ interval: undefined }), undefined, 'Round-robin is 120 ms slower. Too early for an interval.', '—'],
    [
      paired({ metric: 'kv_hit_ratio', difference: -0.4, interval: [-0.42, -0.38] }),
      'a',
      'Round-robin is 40.0 points lower.',
      '−42.0 points to −38.0 points',
    ],
    [
      paired({ metric: 'latency', difference: 1.2, interval: [1, 1.4] }),
      'a',
      'Round-robin is 1,200 ms slower.',
      '+1,000 ms to +1,400 ms',
    ],
    [paired({ difference: undefined, interval: undefined }), undefined, 'No pairs yet.', '—'],
  ])('%# is described in words, with its interval', (metric, better, words, interval) => {
    expect(standing(metric)).toBe(better);
    expect(differenceWords(metric, names)).toBe(words);
    expect(intervalWords(metric)).toBe(interval);
  });
});

describe('the sides', () => {
  it('are named by their modes, and also by their lanes where the modes are the same', () => {
    expect(sideNames(twin())).toEqual(names);
    const { a, b } = twin();
    expect(sideNames({ a, b: { ...b, mode: 'kv' } })).toEqual({ a: 'KV-aware (main)', b: 'KV-aware (twin)' });
  });
});
