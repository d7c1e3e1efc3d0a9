/** @jest-environment node */
import type { Baseline } from '../../client';
import { laneSnapshot } from '../../test/fixtures';
import { recordedTable } from '../../lib/recorded';
import { recordedFigures } from './recorded';
import { builtIn } from '../../test/builtIn';

const h200 = builtIn('h200x3-tp1-llama70b-fp8');
const h100 = builtIn('h100x8-tp2-llama70b-fp8');

describe('the figures of a recorded table', () => {
  const values = (table: Baseline) =>
    Object.fromEntries(Object.entries(recordedFigures(table)).map(([name, { value }]) => [name, value]));

  it('span all levels that have both modes', () => {
    expect(values(h200)).toMatchObject({ levels: '40–180', 'levels-count': '15' });
    expect(values({ ...h200, rows: h200.rows.slice(1) }).levels).toBe('50–180');
    expect(values({ ...h200, rows: [] })).toMatchObject({ levels: '—', 'worse-levels': 'none', 'top-level': '—' });
  });

  it('report a level as worse where the load generator does', () => {
    const improvement = { percent: -1, outcome: 'no_difference' as const };
    const advantages = [{ concurrency: 140, speculation: 'not_recorded' as const, of: { ttft_p95: improvement } }];
    expect(values({ ...h200, advantages: undefined })['worse-levels']).toBe('140, 150, 170, 180');
    expect(values({ ...h200, advantages })['worse-levels']).toBe('150, 170, 180');
  });

  it('have the unfavorable end of a gain, and no gain without a recording', () => {
    expect(values(h200)).toMatchObject({
      'tokens-gain': '1.8–14.0 %', // 1,616.8 against 1,587.8 at 40, 3,656.5 against 3,207.9 at 170
      'ttft-gain': '32.4 %',
      'kv.peak': '3,908 tokens/s',
      'rr.peak': '3,434 tokens/s',
      'kv.ttft': '446–3,143 ms',
    });
    expect(values(h100)).toMatchObject({ 'tokens-gain': '—', 'spread-level': '—', 'worse-levels': 'none' });
  });
});

describe('the table to quote', () => {
  it('is the one that the lane is compared with', () => {
    const lane = laneSnapshot({ baseline: { name: h100.name } });
    expect(recordedTable([h200, h100], lane)).toBe(h100);
  });

  it('is one with throughput where the comparison is with a measured baseline', () => {
    const own = { ...h200, name: 'this target', kind: 'measured' as const };
    const lane = laneSnapshot({ baseline: { name: own.name } });
    expect(recordedTable([own, h100, h200], lane)).toBe(h200);
    expect(recordedTable([own], lane)).toBeUndefined();
    expect(recordedTable(undefined, undefined)).toBeUndefined();
  });
});
