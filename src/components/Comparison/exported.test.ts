/** @jest-environment node */
import { comparison, laneSnapshot, settings, type LaneChange } from '../../test/fixtures';
import { comparisonCsv, comparisonJson, type Exported } from './exported';

function exported(change: LaneChange = {}, isLive = true): Exported {
  const lane = laneSnapshot(change);
  return {
    comparison: lane.baseline,
    known: { lane, settings: settings(), time: '2026-11-20T10:00:00Z' },
    isLive,
    client: { verdict: 'ok', reason: '', cpu_ratio: 0.1, lag_seconds: 0.002 },
  };
}

/** Returns the lines as objects by the names of their columns. */
function rows(csv: string) {
  const [heads, ...lines] = csv
    .trimEnd()
    .split('\r\n')
    .map((line) => line.split(','));
  return lines.map((line) => {
    expect(line).toHaveLength(heads.length);
    return Object.fromEntries(line.map((value, i) => [heads[i], value]));
  });
}

it('has a line for each figure, live and of every column', () => {
  const ttft = { ...comparison().live.ttft, mean: 0.262, p50_error: 0.004 };
  const [mean, , , ...all] = rows(comparisonCsv(exported({ baseline: { live: { ...comparison().live, ttft } } })));
  expect(mean).toMatchObject({ figure: 'ttft', quantile: 'mean', value: '0.262' });
  expect(all).toHaveLength((4 * 2 + 3) * 3);
  expect(all[0]).toEqual({
    figure: 'ttft',
    quantile: 'p50',
    unit: 'seconds',
    source: 'live',
    mode: 'kv',
    speculation: 'off',
    concurrency: '120',
    value: '0.2551',
    interval_low: '0.24',
    interval_high: '0.27',
    turns: '480',
    span_seconds: '150',
    load_generator_lag_seconds: '0.002',
    load_generator_error_seconds: '0.004',
    lookup: '',
    improvement_percent: '',
    improvement_low: '',
    improvement_high: '',
    outcome: '',
    note: '',
  });
  expect(all[1]).toMatchObject({
    source: 'h200x3-tp1-llama70b-fp8',
    mode: 'round_robin',
    value: '0.3747',
    lookup: 'exact',
    improvement_percent: '31.9',
    outcome: 'better',
  });
  const itl = all.filter(({ figure, quantile }) => figure === 'itl' && quantile === 'p95');
  expect(itl[0]).toMatchObject({ value: '0.0498', interval_low: '', note: 'estimated' });
  expect(itl[1]).toMatchObject({ value: '', lookup: 'not_recorded' });
});

it('marks figures as settling, and has none of a workload that does not run, or is lost', () => {
  expect(rows(comparisonCsv(exported({ baseline: { settling: true } })))[0].note).toBe('settling');
  for (const [file, note] of [
    [exported({ state: { running: false, phase: 'stopped' } }), 'stopped'],
    [exported({}, false), 'lost'],
  ] as const) {
    const [live, , , , recorded] = rows(comparisonCsv(file));
    expect(live).toMatchObject({ value: '', interval_low: '', turns: '', span_seconds: '', note });
    expect(recorded).toMatchObject({ value: '0.3747', improvement_percent: '', outcome: '' });
  }
});

it('is the JSON of the API, with its deployment', () => {
  const given = JSON.parse(comparisonJson(exported()));
  expect(given.comparison).toEqual(JSON.parse(JSON.stringify(comparison())));
  expect(given).toMatchObject({ time: '2026-11-20T10:00:00Z', live: true, slo: { ttft: 0.6 }, state: { mode: 'kv' } });
  expect(given.client.lag_seconds).toBe(0.002);
});
