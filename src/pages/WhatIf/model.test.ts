import type { Baseline, BaselineRow } from '../../client';
import { viewOf } from '../../components/Chart';
import { emptyRow } from '../../test/fixtures';
import { curvesCsv } from './exported';
import { check, fields, requestOf, stopsWith, valuesOf, valueText, type Field, type NumberField } from './fields';
import { defaults, done, list, profile } from './fixtures';
import { errorText } from './Presets';
import { keyOf, questionOf } from './useQuestion';
import { baselinesToCompare, draw, holdsUpTo, overloadWords, seriesOf } from './series';

const slo = { ttft: 0.6, tpot: 0.06 };
const ask = (query: string) => questionOf(new URLSearchParams(query), list);

describe('a question', () => {
  it('is the first preset without changes, where the address has none', () => {
    const question = ask('');
    expect(question?.preset?.name).toBe('as-recorded');
    expect(question?.changed).toEqual([]);
    expect(question?.request).toEqual(defaults);
  });

  it('keeps the changes of a preset, field by field', () => {
    const question = ask('preset=own-documents&workers=6&from=40&every=30&no-router-assume-kv-reuse=true');
    expect(question?.changed).toEqual(['workers', 'no-router-assume-kv-reuse', 'from', 'every']);
    expect(question?.before.workers).toBe('3');
    expect(question?.request).toEqual({
      ...defaults,
      openings: 0,
      workers: 6,
      levels: [40, 70, 100],
      router_assume_kv_reuse: false,
    });
  });

  it('ends with the last level, also where no step leads to it', () => {
    expect(ask('from=60&to=100&every=30')?.request?.levels).toEqual([60, 90, 100]);
  });

  it('takes a rate with its arrivals, and a shape in place of texts', () => {
    const query = 'load=rate&to=2&every=0.5&arrivals=gamma&burstiness=0.5&shape=prefix&shape_groups=600&openings=-1';
    const question = ask(query);
    expect(question?.request).toEqual({
      ...defaults,
      levels: ['1/s', '1.5/s', '2/s'],
      arrivals: 'gamma',
      burstiness: 0.5,
      shape: { preset: 'prefix', groups: 600 },
    });
    expect(ask('load=rate&from=0.001')?.errors).toEqual({ from: 'A number from 0.01 to 10000' });
  });

  it('takes the trace of the load generator, where it has one', () => {
    expect(ask('trace=true')?.request?.trace).toBe(false);
    const traced = { ...list, trace: 'trace t.jsonl' };
    const question = questionOf(new URLSearchParams('trace=true&shape=chat&load=rate&arrivals=gamma'), traced);
    expect(question?.request).toMatchObject({ trace: true, shape: { preset: 'recorded' }, arrivals: 'poisson' });
  });

  it('is not requested while a value is invalid, and names it', () => {
    const question = ask('workers=0.5&turns_min=6&from=200&start_rate=0&speculation=draft&seeds=');
    expect(question?.request).toBeUndefined();
    expect(question?.errors).toEqual({
      workers: 'A whole number from 1 to 256',
      turns_min: 'At most 5',
      from: 'At most 100',
      start_rate: 'A number above 0, up to 1000',
      speculation: 'Not available in this profile',
      seeds: 'A whole number from 1 to 12',
    });
    expect(ask('to=1000&every=1')?.errors).toEqual({ every: 'At most 40 levels: use a larger step' });
  });

  it('falls back where a profile or preset no longer exists', () => {
    expect(ask('profile=mine&preset=old')).toMatchObject({
      profile: { name: 'h200-tp1' },
      preset: { name: 'as-recorded' },
    });
    const broken = { ...list, profiles: [{ ...profile, error: 'no such field' }] };
    expect(questionOf(new URLSearchParams(), broken)).toBeUndefined();
  });

  it('does not depend on the order of its fields', () => {
    const { profile: first, ...rest } = defaults;
    expect(keyOf({ ...rest, profile: first })).toBe(keyOf(defaults));
    expect(keyOf({ ...defaults, workers: 6 })).not.toBe(keyOf(defaults));
  });
});

describe('the fields', () => {
  it('convert from a request and back', () => {
    expect(requestOf(defaults, valuesOf(defaults), undefined, defaults)).toEqual(defaults);
    const rates = { ...defaults, levels: ['2/s', '4/s'] };
    expect(requestOf(rates, valuesOf(rates), undefined, defaults)).toEqual(rates);
    expect(requestOf(rates, { ...valuesOf(rates), to: '5' }, undefined, defaults).levels).toEqual([
      '2/s',
      '4/s',
      '5/s',
    ]);
    const long = { ...defaults, opening_tokens: 5000 };
    const chat = requestOf(long, { ...valuesOf(long), shape: 'chat' }, undefined, defaults);
    expect(chat.opening_tokens).toBe(defaults.opening_tokens); // it has no effect, and the API refuses another one
    const limits = { limits: list.limits, maxLevels: 40, speculations: ['not_recorded' as const] };
    expect(check(valuesOf(defaults), limits)).toEqual({});
  });

  const field = (name: string) => fields.find((one) => one.name === name) as Field;

  it('have every value on their slider, in its place', () => {
    const workers = field('workers') as NumberField;
    expect(stopsWith(workers, 3)).toEqual({ stops: workers.stops, at: 2 });
    expect(stopsWith(workers, 7).stops.slice(5, 8)).toEqual([6, 7, 8]);
    expect(stopsWith(workers, 100)).toMatchObject({ at: workers.stops.length });
    const openings = field('openings') as NumberField;
    expect(stopsWith(openings, 2000).stops.slice(-3)).toEqual([1000, 2000, 0]);
    expect(stopsWith(openings, NaN)).toEqual({ stops: openings.stops, at: 0 });
  });

  it('are formatted for readers', () => {
    expect(valueText(field('openings'), '0')).toBe('one each');
    expect(valueText(field('kv_tokens'), '400000')).toBe('400,000 tokens');
    expect(valueText(field('router-track-output-blocks'), 'true')).toBe('on');
  });
});

const row = (concurrency: number, mode: BaselineRow['mode'], change: Partial<BaselineRow> = {}) =>
  emptyRow(concurrency, mode, { ttft: { p50: 0.2, p95: 0.5 }, ...change });

const baseline = (name: string, kind: Baseline['kind'], rows: BaselineRow[]): Baseline => ({
  name,
  title: `Table ${name}`,
  kind,
  deployment: {},
  rows,
});

const baselines = [
  baseline('h100', 'recorded', [row(60, 'kv')]),
  baseline('h200', 'recorded', [row(40, 'kv'), row(60, 'kv'), row(80, 'kv', { speculation: 'eagle3' })]),
  baseline('this target', 'measured', [
    row(80, 'round_robin', { speculation: 'off', ttft: { p95: 0.61 }, measured: '2026-11-20T10:00:00Z' }),
    row(80, 'round_robin', { speculation: 'off', ttft: { p95: 0.9 }, measured: '2026-11-19T10:00:00Z' }),
    row(60, 'least_loaded'),
  ]),
];

describe('the series', () => {
  const beside = baselinesToCompare(baselines, 'h200');
  const series = seriesOf(done, beside, slo);
  const ttft = series[0];

  it('are compared with the profile’s table and measurements here, by level, mode and speculation', () => {
    const others = ttft.values.filter(({ source }) => source !== 'simulated');
    expect(others).toEqual([
      { source: 'recorded', mode: 'kv', concurrency: 60, value: 0.5, slo: 'met' },
      { source: 'measured', mode: 'round_robin', concurrency: 80, value: 0.61, slo: 'missed' },
    ]);
  });

  it('have bands over the seeds, and are judged by the one rule of SLO colors', () => {
    const [first] = ttft.values;
    expect(first).toMatchObject({ source: 'simulated', mode: 'kv', concurrency: 60, value: 0.3, slo: 'met' });
    expect(first.band?.[0]).toBeCloseTo(0.27);
    expect(ttft.values.find(({ concurrency, mode }) => concurrency === 80 && mode === 'kv')?.slo).toBe('near');
    expect(series[1].values[0].slo).toBeUndefined();
  });

  it('hold up to the last level before the first that misses', () => {
    expect(holdsUpTo(ttft, 'simulated', 'kv')).toBe(80);
    expect(holdsUpTo(ttft, 'simulated', 'round_robin')).toBe(0);
    expect(holdsUpTo(ttft, 'recorded', 'kv')).toBe(60);
    expect(holdsUpTo(ttft, 'recorded', 'round_robin')).toBeUndefined();
  });

  it('hold below a rate that a mode does not keep up with', () => {
    const rates = done.points.map((point) => ({
      ...point,
      concurrency: `${Number(point.concurrency) / 20}/s`,
      ...(point.concurrency === 100 && point.mode === 'kv' ? { overloaded: true, figures: {} } : {}),
    }));
    const [first] = seriesOf({ ...done, points: rates }, {}, slo);
    expect(holdsUpTo(first, 'simulated', 'kv')).toBe('4/s');
    expect(overloadWords(first, ['round_robin', 'kv'])).toEqual(['KV-aware does not keep up with 5/s.']);
    const all = seriesOf({ ...done, points: rates.filter(({ overloaded }) => overloaded) }, {}, slo);
    expect(holdsUpTo(all[0], 'simulated', 'kv')).toBe(0);
  });

  it('are drawn by kind, and cut where one grows too large', () => {
    const drawing = draw(ttft, [60, 80, 100], slo);
    expect(drawing.lines.map(({ name, look }) => [name, look])).toEqual([
      ['KV-aware simulated', 'solid'],
      ['Round-robin simulated', 'solid'],
      ['KV-aware recorded', 'dashed'],
      ['Round-robin measured', 'rings'],
    ]);
    expect(drawing.bands?.map(({ of, points }) => [of, points.length])).toEqual([
      ['KV-aware simulated', 3],
      ['Round-robin simulated', 3],
    ]);
    const { slo: objective, y, isCut } = viewOf(drawing, 4);
    expect([objective, y.max, isCut]).toEqual([0.6, 3, true]);
    expect(viewOf(draw(ttft, [60, 80, 100], undefined), 4)).toMatchObject({ isCut: false, slo: undefined });
  });
});

describe('what is exported', () => {
  it('has every figure with its band and source', () => {
    const beside = baselinesToCompare(baselines, 'h200');
    const lines = curvesCsv(done, seriesOf(done, beside, slo), beside)
      .trim()
      .split('\r\n');
    expect(lines[0]).toBe('source,of,mode,concurrency,figure,unit,value,low,high,runs');
    expect(lines[2]).toMatch(/^simulated,h200-tp1,kv,60,ttft_p95,seconds,0.3,0.27,0.33\d*,2$/);
    expect(lines).toContain('recorded,h200,kv,60,ttft_p95,seconds,0.5,,,');
    expect(lines).toContain('measured,this target,round_robin,80,ttft_p95,seconds,0.61,,,');
    expect(lines.filter((line) => line.startsWith('simulated')).length).toBe(6 * 7);
  });
});

it('shows the known errors of a profile', () => {
  expect(errorText(profile)).toBe('Mean error against the recorded table: TTFT p50 3.1 %, hit rate 2.4 points.');
  expect(errorText({})).toBe('');
});
