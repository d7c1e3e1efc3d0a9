/** @jest-environment node */
import type { Improvement, Twin } from '../../client';
import { paired, twin } from '../../components/Twin/fixtures';
import { column, improved, laneSnapshot, settings, type LaneChange } from '../../test/fixtures';
import { headlineOf, headlineOfBoth, type Headline } from './headline';

const time = '2026-11-20T10:00:00Z';
const known = (lane: LaneChange = {}) => ({ lane: laneSnapshot(lane), settings: settings(), time });

/** A baseline with this comparison of its round-robin TTFT p95 with the live one. */
const against = (improvement?: Improvement, change: LaneChange['baseline'] = {}): LaneChange => {
  const p95 = { value: 0.7251, lookup: 'exact' as const, improvement };
  return { baseline: { columns: [column({ mode: 'kv' }), column({ ttft: { p50: p95, p95 } })], ...change } };
};

const text = ({ before, difference, after }: Headline) => [before, difference, after].filter(Boolean).join(' ');

it.each<[string, LaneChange, Headline['kind'], string, string]>([
  [
    'better',
    against(improved(25)),
    'better',
    'KV-aware: first token 25 % sooner than round-robin (recorded)',
    '95 % interval: 13 to 38 % sooner · TTFT p95 of this step: 480 turns in 2 min 30 s',
  ],
  [
    'worse',
    against(improved(-8.2)),
    'worse',
    'KV-aware: first token 8.2 % later than round-robin (recorded)',
    '95 % interval: 4.1 to 12 % later · TTFT p95 of this step: 480 turns in 2 min 30 s',
  ],
  [
    'no difference, with the measured one and the time left',
    against({ ...improved(3, false), seconds_left: 230 }),
    'same',
    'KV-aware: no significant difference from round-robin (recorded)',
    'Measured: first token 3.0 % sooner · 95 % interval: 1.0 % later to 7.0 % sooner · verdict in about 4 min',
  ],
  [
    'too few turns, with the time left',
    against(undefined, { settling: true, settling_for_seconds: 41.3 }),
    'same',
    'Not enough data yet (about 42 s)',
    '',
  ],
  ['too few batches', against({ percent: 3, outcome: 'too_variable' }), 'same', 'Not enough data yet', ''],
  [
    'an error that is too large',
    against({ percent: 3, outcome: 'withheld' }),
    'same',
    'No verdict',
    'The load generator’s own error is too large',
  ],
  [
    'requests that all fail',
    { ...against(improved(25)), window: { ...laneSnapshot().window, error_ratio: 1 }, target: { problem_status: 503 } },
    'same',
    'Every request fails (503)',
    '',
  ],
  [
    'withheld',
    against(undefined, { withheld: 'another lane shares workers' }),
    'same',
    'No verdict',
    'Another lane shares workers',
  ],
  [
    'no recorded results',
    { baseline: { columns: [column({ mode: 'kv' })] } },
    'same',
    'No recorded results of another mode at 120 conversations',
    '',
  ],
  [
    'nothing measured before',
    { baseline: { name: 'this target', columns: [] } },
    'same',
    'No measured results of another mode at 120 conversations',
    '',
  ],
  ['stopped', { state: { running: false, phase: 'stopped' } }, 'same', 'The workload is stopped', ''],
])('states how the step stands to another mode: %s', (_, lane, kind, sentence, detail) => {
  const headline = headlineOf(known(lane));
  expect(text(headline)).toBe(sentence);
  expect(headline.detail ?? '').toBe(detail);
  expect(headline.kind).toBe(kind);
});

const ttft = (change = {}) => [paired({ a: 0.37, b: 0.63, difference: 0.26, ...change })];
const { a: kv, b: roundRobin } = twin();

it.each<[string, Partial<Twin>, Headline['kind'], string, RegExp]>([
  [
    'better',
    { metrics: ttft() },
    'better',
    'KV-aware: first token 41 % sooner than round-robin',
    /^260 ms sooner · 95 % interval: 100 to 140 ms sooner · mean TTFT of 400 turns on both routers since \d\d:\d\d$/,
  ],
  [
    'with the modes swapped',
    { metrics: ttft(), a: { ...roundRobin, lane: 'main' }, b: { ...kv, lane: 'twin' } },
    'worse',
    'KV-aware: first token 70 % later than round-robin',
    /^260 ms later · 95 % interval: 100 to 140 ms later/,
  ],
  [
    'no difference',
    { metrics: ttft({ difference: 0.01, interval: [-0.02, 0.04] }) },
    'same',
    'KV-aware: no significant difference from round-robin',
    /^Measured: first token 1\.6 % sooner · 95 % interval: 20 ms later to 40 ms sooner/,
  ],
  [
    'not due to the modes alone',
    { metrics: ttft(), evidence: 'differ' },
    'same',
    'KV-aware: first token 41 % sooner than round-robin',
    /^260 ms sooner · 95 % interval/,
  ],
  [
    'too few pairs for an interval',
    { metrics: ttft({ interval: undefined }) },
    'same',
    'Not enough data yet',
    /^Measured: first token 41 % sooner · 400 turns on both routers/,
  ],
  [
    'before both have settled',
    { metrics: [], since: undefined },
    'same',
    'Not enough data yet',
    /^Turns count once both routers have settled$/,
  ],
])('states how two routers differ: %s', (_, change, kind, sentence, detail) => {
  const both = twin(change);
  const name = ({ mode }: Twin['a']) => (mode === 'kv' ? 'KV-aware' : 'Round-robin');
  const headline = headlineOfBoth({ a: known(), b: known() }, both, { a: name(both.a), b: name(both.b) });
  expect(text(headline)).toBe(sentence);
  expect(headline.detail).toMatch(detail);
  expect(headline.kind).toBe(kind);
  expect(headline.caution).toBe('The two clusters have not been shown to be equal');
});
