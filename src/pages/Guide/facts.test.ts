/** @jest-environment node */
import type { Comparison, Live } from '../../client';
import { column, comparison, settings, snapshot, type LaneChange, improved } from '../../test/fixtures';
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

function live(lane: LaneChange = {}): Live {
  const shown = snapshot(lane);
  return { state: { status: 'live', snapshot: shown, receivedAt: 0 }, lane: shown.lanes[0] };
}

const facts = (lane: LaneChange = {}) => buildFacts({ live: live(lane), baselines });
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

  it('report unknown speculation of a simulated deployment, as in the recording', () => {
    expect(figures({ state: { speculation: 'not_recorded' } })['live.speculation'].value).toBe(
      'unknown (as in the recording)'
    );
    expect(figures({ state: { ...real, speculation: 'not_recorded' } })['live.speculation'].value).toBe('not recorded');
  });

  it('use the makers’ spelling of engines', () => {
    const target = { deployment: { engine: 'simulated trtllm' } };
    expect(figures({ target })['live.engine']).toEqual({ value: 'simulated TensorRT-LLM', word: 'as configured' });
  });

  it('report that the step settles', () => {
    expect(figures({ state: { settling: true } })['live.ttft.p95'].word).toBe('settling');
  });

  it('are a dash with the reason while nothing runs, but settings stay', () => {
    const stopped = figures({ state: { running: false, phase: 'stopped' } });
    expect(stopped['live.ttft.p95']).toEqual({ value: '—', word: 'stopped' });
    expect(stopped['live.queued']).toEqual({ value: '—', word: 'stopped' });
    expect(stopped['live.concurrency']).toEqual({ value: '120', word: 'configured' });
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
    expect(found['rec.levels']).toEqual({ value: '40–180', word: 'recorded' });
    expect(found['rec.worse-levels'].value).toBe('140, 150, 170, 180');
    expect(found['rec.kv.top-ttft'].value).toBe('3,143.0 ms');
    expect(found['rec.rr.top-ttft'].value).toBe('731.6 ms');
    expect(found['rec.tokens-gain']).toEqual({ value: '1.8–14.0 %', word: 'derived' });
    expect(found['rec.rr.hit'].value).toBe('83.9–99.7 %');
    expect(found['rec.kv.sustained'].value).toBe('130');
    expect(found['rec.rr.sustained'].value).toBe('no level');
    expect([found['rec.kv.isolated'].value, found['rec.rr.isolated'].value]).toEqual(['none', '130']);
    expect([found['rec.spread-level'], found['rec.kv.spread'], found['rec.rr.spread']].map((f) => f.value)).toEqual([
      '170',
      '28–32',
      '12–14',
    ]);
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
  const ttft = (percent: number, shown: boolean): Partial<Comparison> => ({
    columns: [
      column({
        ttft: {
          p50: { lookup: 'not_recorded' },
          p95: { value: 0.7, lookup: 'exact', improvement: improved(percent, shown) },
        },
      }),
      column({ mode: 'kv', ttft: { p50: { lookup: 'not_recorded' }, p95: { value: 3.1, lookup: 'exact' } } }),
    ],
  });

  it.each<[string, LaneChange, string[], string[]]>([
    ['KV-aware routing ahead', { baseline: ttft(12, true) }, ['kv better'], ['kv worse', 'no difference']],
    ['KV-aware routing behind', { baseline: ttft(-300, true) }, ['kv worse'], ['kv better']],
    ['a difference within chance', { baseline: ttft(3, false) }, ['no difference'], ['kv better', 'kv worse']],
    [
      'nothing of that under round-robin',
      { state: { mode: 'round_robin' }, baseline: ttft(12, true) },
      ['running'],
      ['kv better'],
    ],
    [
      'nothing of that under a mode that is not reported',
      { state: { mode: 'unknown' }, baseline: ttft(12, true) },
      ['running'],
      ['kv better'],
    ],
    [
      'nothing of that while settling',
      { state: { settling: true }, baseline: ttft(12, true) },
      ['running'],
      ['kv better', 'slo met', 'slo missed'],
    ],
    ['a missed SLO', {}, ['slo missed'], ['slo met']], // TPOT p95 is 61.2 ms
    ['speculation', { state: { speculation: 'eagle3' } }, ['speculating', 'simulated'], []],
    ['a serving that is not reported', {}, ['serving not known'], ['aggregated', 'disaggregated']],
    [
      'a disaggregated serving',
      { target: { deployment: { serving: 'disaggregated' } } },
      ['disaggregated'],
      ['aggregated', 'serving not known'],
    ],
    [
      'another deployment',
      { baseline: { differences: [{ field: 'gpu', live: 'a', baseline: 'b' }] } },
      ['other deployment'],
      [],
    ],
    [
      'nothing of a run while there is none',
      { state: { running: false, phase: 'stopped' } },
      [],
      ['running', 'slo missed'],
    ],
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
