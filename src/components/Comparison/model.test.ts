/** @jest-environment node */
import { column, comparison, laneSnapshot, settings } from '../../test/fixtures';
import { digits, valueWithUnit } from '../../lib/format';
import { toModel, type Row } from './model';

type Input = Parameters<typeof toModel>[0];

function model(change: Partial<Input> = {}) {
  return toModel({
    comparison: comparison(),
    lane: laneSnapshot(),
    settings: settings(),
    time: '2026-11-20T10:00:00Z',
    ...change,
  });
}

/** Returns a cell of a metric under a head, with its formatted numbers. */
function cell(table: { heads: Array<{ label: string }>; rows: Row[] }, name: string, label: string) {
  const row = table.rows.find((r) => r.name === name);
  const found = row?.cells[table.heads.findIndex((head) => head.label === label)];
  if (!found) {
    throw new Error(`no ${label} of ${name}`);
  }
  const { value, format, interval, ...rest } = found;
  const ends = interval?.map((end) => digits(end, format)).join('–');
  return { ...rest, text: valueWithUnit(value, format), interval: ends };
}

describe('columns', () => {
  it.each([
    [{}, ['Live', 'RR', 'KV'], ['RR', 'KV']],
    [{ hideKV: true }, ['Live', 'RR'], ['RR']],
    [{ hideKV: true, hideRoundRobin: true }, ['Live'], []],
  ])('stand in the order of the modes, without those that are hidden: %j', (hidden, heads, named) => {
    const { latencies, rates, sources } = model(hidden);
    expect(rates.heads.map((head) => head.label)).toEqual(heads);
    const both = ['p50', 'p95'].flatMap((percentile) => heads.map((head) => `${head} ${percentile}`));
    expect(latencies.heads.map((head) => head.label)).toEqual(both);
    expect(sources.map(({ short }) => short)).toEqual(named);
  });

  it('name the speculation where the mode alone does not distinguish them', () => {
    const kv = (['off', 'eagle3'] as const).map((speculation) => column({ mode: 'kv', speculation }));
    const columns = [column(), ...kv];
    const { rates } = model({ comparison: comparison({ columns }) });
    expect(rates.heads.map((h) => h.label)).toEqual(['Live', 'RR', 'KV Off', 'KV EAGLE-3']);
  });

  it('have the names of arms', () => {
    const columns = [column({ arm: 'cache-aware', mode: 'unknown' }), column({ arm: 'p2c', mode: 'unknown' })];
    const { rates, sources } = model({ comparison: comparison({ columns }) });
    expect(rates.heads.map((head) => head.label)).toEqual(['Live', 'cache-aware', 'p2c']);
    expect(sources[0].text).toMatch(/^cache-aware, speculation/);
  });

  it('of this target omit the mode in force, and state when and from how many turns they were measured', () => {
    const columns = [
      column({ speculation: 'off', measured: '2026-11-20T09:50:00Z', n: 412 }),
      column({ mode: 'kv', speculation: 'off' }),
    ];
    const { rates, sources } = model({ comparison: comparison({ name: 'this target', columns }) });
    expect(rates.heads.map((h) => [h.label, h.note])).toEqual([
      ['Live', 'this step, n 480'],
      ['RR', 'measured'],
    ]);
    expect(sources).toEqual([
      { short: 'RR', text: 'Round-robin routing, speculation off, measured 10 min 0 s ago, n 412' },
    ]);
  });
});

describe('values', () => {
  it('are as recorded', () => {
    const { latencies, rates } = model();
    expect(cell(latencies, 'TTFT', 'RR p50').text).toBe('375 ms');
    expect(cell(latencies, 'End-to-end', 'RR p95').text).toBe('31,400 ms');
    expect(cell(rates, 'Output tokens/s', 'RR').text).toBe('2,817');
    expect(cell(rates, 'KV hit rate', 'RR').text).toBe('12.3 %');
  });

  it('are live with their interval', () => {
    const { latencies, rates } = model();
    expect(cell(latencies, 'TTFT', 'Live p50')).toEqual({ live: true, text: '255 ms', interval: '240–270' });
    expect(cell(latencies, 'TPOT', 'Live p50')).toMatchObject({ text: '26.1 ms', interval: '25.0–27.0' });
    expect(cell(latencies, 'End-to-end', 'Live p50')).toMatchObject({ text: '21,000 ms', interval: '20,100–21,800' });
    expect(cell(rates, 'Output tokens/s', 'Live')).toEqual({ live: true, text: '3,168', interval: '3,071–3,266' });
    expect(cell(rates, 'Requests/s', 'Live')).toEqual({ live: true, text: '4.63' });
    expect(cell(rates, 'Error rate, 60 s', 'Live').text).toBe('1.3 %');
    const { live } = comparison();
    const ttft = { ...live.ttft, mean: 0.262, mean_interval: [0.25, 0.28] as [number, number] };
    const mean = model({ comparison: comparison({ live: { ...live, ttft } }) }).rates;
    expect(mean.rows[0].name).toBe('TTFT mean');
    expect(cell(mean, 'TTFT mean', 'Live')).toEqual({ live: true, text: '262 ms', interval: '250–280' });
  });

  it('of ITL are marked as estimated, and have no interval', () => {
    expect(cell(model().latencies, 'ITL', 'Live p95')).toEqual({ live: true, text: '49.8 ms', tag: 'estimated' });
  });
});

describe('differences', () => {
  it('are shown by mark and word, or as none', () => {
    const { latencies, rates } = model();
    expect(cell(latencies, 'TTFT', 'RR p50').difference).toMatchObject({
      kind: 'better',
      text: '−120 ms (−31.9 %)',
      verdict: 'better',
    });
    expect(cell(latencies, 'TPOT', 'RR p95').difference).toEqual({
      kind: 'worse',
      text: '+6.1 ms (+8.2 %)',
      verdict: 'worse',
      interval: 'Improvement, 95 % interval: −12.3 to −4.1 %',
    });
    expect(cell(latencies, 'TPOT', 'RR p50').difference).toEqual({
      kind: 'same',
      text: '−0.3 ms (−1.0 %)',
      verdict: 'not certain',
      interval: 'Improvement, 95 % interval: −1.0 to +3.0 %',
    });
    expect(cell(rates, 'Output tokens/s', 'RR').difference?.text).toBe('+351 (+12.5 %)');
  });

  it('are not shown where the turns are too few', () => {
    const improvement = { percent: -12, outcome: 'too_variable' as const };
    const requests_per_second = { value: 4, lookup: 'exact' as const, improvement };
    const { rates } = model({ comparison: comparison({ columns: [column({ requests_per_second })] }) });
    expect(cell(rates, 'Requests/s', 'RR').difference).toMatchObject({
      kind: 'same',
      text: '+0.63 (−12.0 %)',
      verdict: 'not certain yet',
    });
  });

  it('are not shown where there is nothing to compare', () => {
    expect(cell(model().latencies, 'ITL', 'RR p50').difference).toBeUndefined();
  });
});

describe('SLO colors', () => {
  it('are on the p95 of TTFT and TPOT alone, live and recorded', () => {
    const { latencies } = model();
    const colored = latencies.rows.flatMap((row) =>
      row.cells.flatMap((c, i) => (c.slo ? [`${row.name} ${latencies.heads[i].label} ${c.slo}`] : []))
    );
    expect(colored).toEqual([
      'TTFT Live p95 near', // 543.8 of 600 ms
      'TTFT RR p95 missed',
      'TTFT KV p95 missed',
      'TPOT Live p95 missed', // 61.2 of 60 ms
      'TPOT RR p95 near',
      'TPOT KV p95 near',
    ]);
  });

  it('are on nothing live while the step settles', () => {
    const { latencies, rates } = model({ comparison: comparison({ settling: true, columns: [] }) });
    expect(cell(latencies, 'TTFT', 'Live p95')).toMatchObject({ tag: 'settling' });
    expect(latencies.rows.flatMap((row) => row.cells).some((c) => c.slo)).toBe(false);
    expect(cell(rates, 'Output tokens/s', 'Live').tag).toBe('settling');
  });

  it('mark an error rate by the threshold of its alert', () => {
    const lane = laneSnapshot();
    const rate = (error_ratio: number) =>
      cell(model({ lane: { ...lane, window: { ...lane.window, error_ratio } } }).rates, 'Error rate, 60 s', 'Live');
    expect([rate(0.01).failing, rate(0.011).failing]).toEqual([false, true]);
  });

  it('follow the settings', () => {
    const { latencies } = model({ settings: settings({ slo: { ttft: 1, tpot: 1 } }) });
    expect(cell(latencies, 'TTFT', 'Live p95').slo).toBe('met');
  });
});

describe('tags', () => {
  it.each([
    ['interpolated' as const, 0.5, 'interpolated', '500 ms'],
    ['outside_range' as const, undefined, 'outside range', '—'],
    ['not_recorded' as const, undefined, 'not recorded', '—'],
  ])('say that a value is %s', (lookup, value, tag, text) => {
    const found = { lookup, value };
    const columns = [column({ ttft: { p50: found, p95: found } })];
    const { latencies, tags } = model({ comparison: comparison({ columns }) });
    expect(cell(latencies, 'TTFT', 'RR p50')).toMatchObject({ tag, text });
    expect(tags).toContain(tag);
  });

  it.each(['stopped', 'draining', 'switching'] as const)('say in place of live values that it is %s', (phase) => {
    const { latencies, rates, tags } = model({ lane: laneSnapshot({ state: { phase } }) });
    expect(cell(latencies, 'TTFT', 'Live p50')).toEqual({ live: true, text: '—', tag: phase });
    expect(cell(rates, 'Error rate, 60 s', 'Live')).toEqual({ live: true, text: '—', tag: phase });
    expect(tags).toContain(phase);
  });

  it('report that there are no data yet', () => {
    const none = { n: 0 };
    const live = { ttft: none, tpot: none, itl: none, latency: none };
    const { latencies } = model({ comparison: comparison({ live, n: 0 }) });
    expect(cell(latencies, 'End-to-end', 'Live p95')).toEqual({ live: true, text: '—', tag: 'no data yet' });
    expect(latencies.heads[0].note).toBe('');
  });

  it('distinguish a hit rate that is not reported from one that has no value yet', () => {
    const unreported = { ...comparison(), live_kv_hit_ratio: undefined };
    const { rates, tags } = model({ comparison: { ...unreported, n: 12 } });
    expect(cell(rates, 'KV hit rate', 'Live')).toEqual({ live: true, text: '—', tag: 'not reported' });
    expect(tags).toContain('not reported');
    expect(cell(model({ comparison: { ...unreported, n: 0 } }).rates, 'KV hit rate', 'Live').tag).toBe('no data yet');
  });

  it('say of a hit rate that only the cluster has it', () => {
    const kv = { hit_ratio: 0.5, source: 'frontend' as const };
    const { rates } = model({
      comparison: { ...comparison(), live_kv_hit_ratio: undefined },
      lane: laneSnapshot({ kv }),
    });
    expect(cell(rates, 'KV hit rate', 'Live')).toMatchObject({ text: '50.0 %', tag: 'from the cluster' });
  });

  it('report that the load generator is unreachable, and keep recorded values', () => {
    const { latencies, rates } = model({ lane: undefined });
    expect(cell(latencies, 'TTFT', 'Live p50')).toEqual({ live: true, text: '—', tag: 'lost' });
    expect(cell(rates, 'Output tokens/s', 'Live')).toEqual({ live: true, text: '—', tag: 'lost' });
    expect(cell(latencies, 'TTFT', 'RR p50')).toMatchObject({ text: '375 ms', difference: undefined });
  });

  it('of the error rate: it was not recorded', () => {
    expect(cell(model().rates, 'Error rate, 60 s', 'RR').tag).toBe('not recorded');
  });
});
