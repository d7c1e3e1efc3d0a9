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

  it('span all levels that have both modes, or those that the documents print', () => {
    expect(values(h200)).toMatchObject({
      'rec.levels': '40 to 180',
      'rec.levels-count': '15',
      'doc.levels': '60 to 180',
    });
    expect(values({ ...h200, rows: h200.rows.slice(1) })['rec.levels']).toBe('50 to 180');
    expect(values({ ...h200, rows: [] })).toMatchObject({
      'rec.levels': '—',
      'rec.worse-levels': 'none',
      'doc.ttft-gain': '—',
    });
    expect(values(h100)).toMatchObject({ 'rec.levels': '20 to 120', 'doc.levels': '20 to 120' });
  });

  it('report a level as worse where the load generator does', () => {
    const improvement = { percent: -1, outcome: 'no_difference' as const };
    const advantages = [{ concurrency: 140, speculation: 'not_recorded' as const, of: { ttft_p95: improvement } }];
    expect(values({ ...h200, advantages: undefined })['rec.worse-levels']).toBe('140, 150, 170, 180');
    expect(values({ ...h200, advantages })['rec.worse-levels']).toBe('150, 170, 180');
  });

  it('have the unfavorable end of a gain, and no gain without a recording', () => {
    expect(values(h200)).toMatchObject({
      'rec.tokens-gain': '1.8–14.0 %', // 1,616.8 against 1,587.8 at 40, 3,656.5 against 3,207.9 at 170
      'rec.kv.peak': '3,908 tokens/s',
      'rec.rr.peak': '3,434 tokens/s',
      'rec.kv.ttft': '446–3,143 ms',
      'rec.rr.later-ttft': '732 ms',
    });
    expect(values(h100)).toMatchObject({
      'rec.tokens-gain': '—',
      'rec.spread-level': '—',
      'rec.worse-levels': 'none',
      'rec.later-level': '—',
    });
  });

  it('are those of the documents at the levels that they print', () => {
    expect(values(h200)).toMatchObject({
      'doc.tokens-gain': '5.4–13.8 %',
      'doc.tokens-mean': '9.4 %',
      'doc.kv.hit': '91.2–96.1 %',
      'doc.kv.hit-mean': '94.3 %',
      'doc.rr.hit': '83.9–90.9 %',
      'doc.rr.hit-mean': '87.8 %',
      'doc.ttft-level': '60',
      'doc.ttft-gain': '32.0 %',
      'doc.rr.ttft': '655 ms',
      'doc.kv.ttft': '446 ms',
      'doc.ttft-median-mean': '0.7 %',
    });
  });

  it('have how queues built up', () => {
    expect(values(h200)).toMatchObject({
      'rec.inflight': '57',
      'rec.threshold': '65',
      'rec.queue-before': '30.0 ms',
      'rec.queue-max': '1,480 ms',
      'rec.queue-second': '1,360 ms',
      'rec.queue-other': '40.0 ms',
      'rec.recovery': '60 to 90 s',
    });
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
