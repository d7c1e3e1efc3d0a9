/** @jest-environment node */
import type { Comparison, HeadlineKind, Live } from '../../client';
import { column, comparison, headline, live, settings, snapshot, type LaneChange } from '../../test/fixtures';
import { buildFacts } from './facts';
import { builtIn, judged } from '../../test/builtIn';

const levels = [20, 30, 40, 50, 60, 70, 80, 100, 120];
const baselines = [
  builtIn('h100x8-tp2-llama70b-fp8', [
    judged('round_robin', { level: 0, ttft_only: levels }),
    judged('kv', { level: 50, ttft_only: levels }),
  ]),
  builtIn('h200x3-tp1-llama70b-fp8', [
    judged('round_robin', { level: 0, isolated: [130] }),
    judged('kv', { level: 130 }),
  ]),
];
const name = 'h200x3-tp1-llama70b-fp8';

const facts = (lane: LaneChange = {}) => buildFacts({ live: live(snapshot(lane)), baselines });
const figures = (lane: LaneChange = {}) => facts(lane).figures;

/** A target that is not known to be imitated. */
const real = { driver: 'endpoints' };

describe('live figures', () => {
  it('are marked as live', () => {
    expect(figures({ state: real })['live.ttft.p95']).toEqual({ value: '544 ms', word: 'live' });
    expect(figures({ state: real })['live.tokens']).toEqual({ value: '3,168 tokens/s', word: 'live' });
    expect(figures()['slo.ttft']).toEqual({ value: '600 ms', word: 'configured' });
  });

  it('are marked as simulated, or imitated', () => {
    expect(figures()['live.hit']).toEqual({ value: '71.3 %', word: 'live, simulated' });
    const mock = figures({ state: real, target: { kind: 'mocked' } });
    expect(mock['live.hit'].word).toBe('live, mock workers');
  });

  it.each([
    [undefined, []],
    [{ profile: 'h200-tp1', calibrated: true, speed: 1 }, ['calibrated']],
    [{ profile: 'h200-tp1', calibrated: false, speed: 1 }, ['not calibrated']],
    [{ profile: 'h200-tp1', calibrated: true, speed: 2 }, ['not calibrated']],
  ])('knows of the simulation %j: %j', (simulation, expected) => {
    const { holds } = facts({ state: { simulation } });
    expect(['calibrated' as const, 'not calibrated' as const].filter((c) => holds.has(c))).toEqual(expected);
  });

  it('say of a simulated deployment that its speculation was not recorded', () => {
    expect(figures({ state: { speculation: 'not_recorded' } })['live.speculation'].value).toBe('not recorded');
  });

  it('use the makers’ spelling of engines', () => {
    const target = { deployment: { engine: 'simulated trtllm' } };
    expect(figures({ target })['live.engine']).toEqual({ value: 'simulated TensorRT-LLM', word: 'as configured' });
  });

  it('report that the step settles', () => {
    expect(figures({ state: { settling: true } })['live.ttft.p95'].word).toBe('settling');
  });

  it('are a dash with the reason while nothing runs, but settings stay', () => {
    expect(figures({ state: { running: false, phase: 'stopped' } })).toMatchObject({
      'live.ttft.p95': { value: '—', word: 'stopped' },
      'live.queued': { value: '—', word: 'stopped' },
      'live.concurrency': { value: '120', word: 'configured' },
    });
  });

  it('are a dash where they are not known', () => {
    expect(figures()['live.queued']).toEqual({ value: '—', word: 'not reported' });
    expect(figures()['live.gpu']).toEqual({ value: '—', word: 'not reported' });
    expect(figures({ totals: { ...snapshot().lanes[0].totals, ok: 0 } })['live.prompt-tokens'].value).toBe('—');
  });

  it('are no old number after a loss', () => {
    const lost: Live = { state: { status: 'lost', since: 0, problem: 'refused', last: snapshot() } };
    const { figures: after, holds } = buildFacts({ live: lost, baselines });
    expect(after['live.ttft.p95']).toEqual({ value: '—', word: 'lost' });
    expect(after['live.mode']).toEqual({ value: '—', word: 'lost' });
    expect(after['here.rr.ttft.p95']).toEqual({ value: '—', word: 'currently unknown' });
    expect(after['rec.kv.peak'].value).toBe('3,908 tokens/s');
    expect(Array.from(holds)).toEqual([]);
  });
});

describe('recorded figures', () => {
  it('at this concurrency name their origin', () => {
    const columns = [
      column({
        ttft: { p50: { lookup: 'not_recorded' }, p95: { lookup: 'outside_range' } },
        kv_hit_ratio: { value: 0.3, lookup: 'interpolated' },
      }),
    ];
    const found = figures({ baseline: { columns } });
    expect(found['here.rr.ttft.p95']).toEqual({ value: '—', word: 'outside the recorded range' });
    expect(found['here.rr.hit']).toEqual({ value: '30.0 %', word: 'interpolated' });
    expect(found['here.kv.hit']).toEqual({ value: '—', word: 'not recorded' });
  });

  it('by this target are marked as measured here', () => {
    const columns = [column({ measured: '2026-11-20T09:50:00Z', n: 400 })];
    expect(figures({ baseline: { name: 'this target', columns } })['here.rr.ttft.p95'].word).toBe('measured here');
  });

  it('over all levels come from the table that live is compared with', () => {
    const found = figures({ baseline: { name } });
    expect(found['rec.levels']).toEqual({ value: '40 to 180', word: 'recorded' });
    expect(found['rec.tokens-gain']).toEqual({ value: '1.8–14.0 %', word: 'derived' });
    expect(Object.fromEntries(Object.entries(found).map(([key, { value }]) => [key, value]))).toMatchObject({
      'rec.worse-levels': '140, 150, 170, 180',
      'rec.kv.later-ttft': '3,143 ms',
      'rec.rr.later-ttft': '732 ms',
      'rec.rr.hit': '83.9–99.7 %',
      'rec.kv.sustained': '130',
      'rec.rr.sustained': 'no level',
      'rec.kv.isolated': 'none',
      'rec.rr.isolated': '130',
      'rec.spread-level': '170',
      'rec.kv.spread': '28–32',
      'rec.rr.spread': '12–14',
    });
  });

  it('are absent where the table lacks them', () => {
    const found = figures({ baseline: { name: 'h100x8-tp2-llama70b-fp8' } });
    expect(found['rec.kv.peak']).toEqual({ value: '—', word: 'not recorded' });
    expect(found['rec.kv.spread']).toEqual({ value: '—', word: 'not recorded' });
    expect(found['rec.worse-levels'].value).toBe('none');
  });

  it('are a dash before any table is known', () => {
    const { figures: none } = buildFacts({ live: live(), baselines: undefined });
    expect(none['rec.kv.peak']).toEqual({ value: '—', word: 'no recorded table yet' });
  });

  it('are judged by the available values, with a note', () => {
    const word = 'derived, judged by TTFT alone; TPOT not recorded';
    const found = figures({ baseline: { name: 'h100x8-tp2-llama70b-fp8' } });
    expect(found['rec.kv.sustained']).toEqual({ value: '50', word });
    expect(found['rec.rr.sustained']).toEqual({ value: 'no level', word });
  });
});

describe('conditions', () => {
  const says = (kind: HeadlineKind): Partial<Comparison> => ({
    headline: headline({ lines: [{ against: 'recorded', metric: 'ttft_p95', kind, text: '' }] }),
  });

  const ahead = says('better');
  const slos = ['slo met', 'slo missed'];
  const disaggregated = { deployment: { serving: 'disaggregated' } } as const;
  const differences = [{ field: 'gpu', live: 'a', baseline: 'b' }];

  it.each<[string, LaneChange, string[], string[]]>([
    ['KV-aware routing ahead', { baseline: ahead }, ['kv better'], ['kv worse', 'no difference']],
    ['KV-aware routing behind', { baseline: says('worse') }, ['kv worse'], ['kv better']],
    ['a difference within chance', { baseline: says('uncertain') }, ['no difference'], ['kv better', 'kv worse']],
    ['none under round-robin', { state: { mode: 'round_robin' }, baseline: ahead }, ['running'], ['kv better']],
    [
      'none under a mode that is not reported',
      { state: { mode: 'unknown' }, baseline: ahead },
      ['running'],
      ['kv better'],
    ],
    ['none while settling', { state: { settling: true }, baseline: ahead }, ['running'], ['kv better', ...slos]],
    ['a missed SLO', {}, ['slo missed'], ['slo met']], // TPOT p95 is 61.2 ms
    ['speculation', { state: { speculation: 'eagle3' } }, ['speculating', 'simulated'], []],
    ['a serving that is not reported', {}, ['serving not known'], ['aggregated', 'disaggregated']],
    ['a disaggregated serving', { target: disaggregated }, ['disaggregated'], ['aggregated', 'serving not known']],
    ['another deployment', { baseline: { differences } }, ['other deployment'], []],
    ['none of a run while there is none', { state: { running: false, phase: 'stopped' } }, [], ['running', ...slos]],
  ])('%s', (_, lane, held, others) => {
    const { holds } = facts(lane);
    expect(held.filter((one) => !Array.from<string>(holds).includes(one))).toEqual([]);
    expect(others.filter((one) => Array.from<string>(holds).includes(one))).toEqual([]);
  });

  it('include SLOs that are met exactly', () => {
    const none = { n: 0 };
    const { slo } = settings();
    const met = comparison().live;
    const lane = {
      baseline: { live: { ...met, itl: none, ttft: { n: 9, p95: slo.ttft }, tpot: { n: 9, p95: slo.tpot } } },
    };
    expect(facts(lane).holds.has('slo met')).toBe(true);
  });
});
