/** @jest-environment node */
import type { Baseline, BaselineRow, Comparison, Live, Snapshot } from '../../client';
import { column, comparison, emptyRow, improved, live, snapshot, ttftP95, type LaneChange } from '../../test/fixtures';
import { checklist } from './flow';
import { observe } from './progress';
import { restoreProgress, type LaneEvent } from './recall';
import { NO_PROGRESS, type Progress } from './seen';

/** A second of the demonstration. */
interface Second {
  /** Minutes and seconds past ten. */
  at: string;
  lane?: LaneChange;
}

const time = (at: string) => `2026-11-20T10:${at}Z`;
const START = time('00:00');

const stopped: LaneChange = { state: { running: false, phase: 'stopped', started: undefined } };

/** A lane that runs since ten o'clock, without an answer so far. */
function runs({ state, baseline, totals, ...change }: LaneChange = {}): LaneChange {
  return {
    ...change,
    state: { mode: 'round_robin', started: START, settling: true, concurrency: { target: 60, actual: 60 }, ...state },
    totals: { ...snapshot().lanes[0].totals, ok: 0, ...totals },
    baseline: { concurrency: 60, settling_for_seconds: 30, ...baseline },
  };
}

/** A settled lane; TTFT p95 in seconds with its interval. */
function settled(mode: 'kv' | 'round_robin', ttft: number, more: LaneChange = {}): LaneChange {
  const live: Comparison['live'] = {
    ...comparison().live,
    ttft: { p50: 0.2, p95: ttft, p95_interval: [ttft - 0.01, ttft + 0.01], n: 480 },
    tpot: { p50: 0.03, p95: 0.05, n: 480 },
  };
  return runs({
    ...more,
    state: { mode, settling: false, ...more.state },
    baseline: { live, live_kv_hit_ratio: 0.9, columns: [], ...more.baseline },
  });
}

const see = (before: Progress, ...seconds: Second[]) =>
  seconds.reduce((progress, { at, lane }) => observe(progress, snapshot(lane, { time: time(at) }), 'main'), before);

const items = (progress: Progress, shown = snapshot()) =>
  checklist(progress, live(shown)).flatMap((group) => group.items);

function item(id: string, progress: Progress, lane: LaneChange = {}) {
  const found = items(progress, snapshot(lane)).find((one) => one.id === id);
  if (!found) {
    throw new Error(`no item ${id}`);
  }
  return found;
}

/** Returns an item after a second of a lane. */
const seen = (id: string, lane: LaneChange) => item(id, see(NO_PROGRESS, { at: '02:00', lane }), lane);

const ticked = (progress: Progress) => items(progress).flatMap(({ id, done }) => (done ? id : []));

describe('no step is ticked without an observation', () => {
  it('before anything', () => {
    expect(ticked(NO_PROGRESS)).toEqual([]);
  });

  it('while stopped', () => {
    const progress = see(NO_PROGRESS, { at: '00:00', lane: stopped }, { at: '00:01', lane: stopped });
    expect(ticked(progress)).toEqual([]);
    expect(item('started', progress, stopped).why).toBe('Press Start.');
    expect(item('slo', progress, stopped).why).toBe('The workload is not running.');
  });

  it('for a lane that does not exist', () => {
    expect(observe(NO_PROGRESS, snapshot(), 'twin')).toBe(NO_PROGRESS);
  });

  it('for a hit rate that is not reported', () => {
    const kv = { predicted: 0.9, not_reported: 'the engine does not report cached tokens' };
    const why = 'Cannot be shown here: the engine does not report cached tokens.';
    expect(item('hit', NO_PROGRESS, { ...settled('kv', 0.45), kv })).toMatchObject({ done: false, why });
  });

  it('while loading, or after a loss', () => {
    const itemsOf = (state: Live['state']) => checklist(NO_PROGRESS, { state }).flatMap((group) => group.items);
    const loading = itemsOf({ status: 'loading' });
    expect(loading.map((one) => one.why)).toEqual(loading.map(() => 'Waiting for the load generator.'));
    const lost = itemsOf({ status: 'lost', since: 0, problem: '' });
    expect(lost[0]).toMatchObject({ done: false, why: 'No live data.' });
  });
});

describe('the flow, second by second', () => {
  const slow = settled('round_robin', 0.65);
  const fast = settled('kv', 0.45, { baseline: { live_kv_hit_ratio: 0.95 } });
  const turns = [
    { turn: '1', p50: 0.4, n: 9 },
    { turn: '3', p50: 0.2, n: 9 },
  ];

  it('ticks one after the other', () => {
    let progress = see(NO_PROGRESS, { at: '00:00', lane: stopped }, { at: '00:01', lane: runs() });
    expect(ticked(progress)).toEqual(['started']);
    expect(item('started', progress).why).toContain('60 conversations, Round-robin');
    expect(item('baseline', progress, runs()).why).toBe('Settling: 30 s to go.');

    progress = see(progress, { at: '01:30', lane: slow });
    expect(ticked(progress)).toEqual(['started', 'baseline', 'phase-1']);
    expect(item('baseline', progress).why).toContain('TTFT p95 650 ms');

    progress = see(progress, { at: '02:00', lane: runs({ state: { phase: 'switching' } }) });
    expect(item('changed', progress).done).toBe(false);
    progress = see(progress, { at: '02:10', lane: runs({ state: { mode: 'kv' } }) });
    expect(ticked(progress)).toEqual(['started', 'baseline', 'changed', 'phase-1']);
    expect(item('settled', progress, runs({ state: { mode: 'kv' } })).why).toBe('Settling: 30 s to go.');

    progress = see(progress, { at: '03:30', lane: { ...fast, ttft_by_turn: turns } });
    expect(ticked(progress)).toEqual([
      ...['started', 'baseline', 'changed', 'settled', 'improved', 'hit', 'slo'],
      'turns',
      ...['phase-1', 'phase-2'],
    ]);
    expect(item('improved', progress).why).toContain('450 ms live, 650 ms under round-robin (measured here)');
    expect(item('hit', progress).why).toContain('95.0 % live, 90.0 % under round-robin (measured here)');
    expect(item('turns', progress).why).toContain('400 ms in the first turn, 200 ms in the third');

    progress = see(progress, {
      at: '04:00',
      lane: runs({ state: { mode: 'kv', concurrency: { target: 120, actual: 60 } } }),
    });
    expect(item('raised', progress).why).toContain('From 60 to 120');
    expect(item('errors', progress)).toMatchObject({ done: false, why: 'No turn has ended yet.' });
    progress = see(progress, { at: '04:01', lane: runs({ totals: { ...snapshot().lanes[0].totals, ok: 5 } }) });
    expect(ticked(progress)).toHaveLength(12);
  });

  it('keeps its object while nothing is new', () => {
    const progress = see(NO_PROGRESS, { at: '00:01', lane: runs() });
    expect(see(progress, { at: '00:02', lane: runs() })).toBe(progress);
  });
});

describe('an improvement', () => {
  const lane = (mode: 'kv' | 'round_robin', ttft: number, percent: number, shown = true) =>
    settled(mode, ttft, { baseline: { columns: [column({ ttft: ttftP95(0.6, improved(percent, shown)) })] } });
  const other = '600 ms under round-robin (recorded)';
  const needs = 'Needs KV-aware routing, settled, and a round-robin figure at the same concurrency.';

  it.each([
    ['judged by the recorded value without one measured here', lane('kv', 0.45, 25), true, `450 ms live, ${other}`],
    ['none within chance', lane('kv', 0.58, 3, false), false, `Not certain: TTFT p95 580 ms live, ${other}.`],
    [
      'none where it is worse, which it says',
      lane('kv', 3.1, -400),
      false,
      'Worse now; say so: TTFT p95 3,100 ms live',
    ],
    ['none under round-robin', lane('round_robin', 0.45, 25), false, needs],
  ])('is %s', (_, at, done, why) => {
    expect(seen('improved', at)).toMatchObject({ done, why: expect.stringContaining(why) });
  });

  it('is not compared with another concurrency', () => {
    const at180 = settled('kv', 0.45, { state: { concurrency: { target: 180, actual: 180 } } });
    const progress = see(
      NO_PROGRESS,
      { at: '01:00', lane: settled('round_robin', 0.65) },
      { at: '03:00', lane: at180 }
    );
    expect(item('improved', progress, at180)).toMatchObject({ done: false, why: needs });
  });

  it('leaves a missed objective named', () => {
    expect(seen('slo', settled('kv', 3.1)).why).toBe('Not met now: TTFT p95 3,100 ms, TPOT p95 50.0 ms.');
  });
});

it('ignores a small lead of later turns, which may be chance', () => {
  const ttft_by_turn = [
    { turn: '1', p50: 0.255, n: 90 },
    { turn: '3', p50: 0.252, n: 80 },
  ];
  const lane = { ...settled('kv', 0.45), ttft_by_turn };
  expect(seen('turns', lane)).toMatchObject({
    done: false,
    why:
      'Not clearly now: median TTFT 255 ms in the first turn, 252 ms in the third. With shared ' +
      'texts, first turns are fast as well.',
  });
});

describe('more tokens per second', () => {
  const kv = (tokens: number, decided: boolean) => {
    const improvement = improved(100 * (tokens / 2817 - 1), decided);
    const columns = [column({ output_tokens_per_second: { value: 2817, lookup: 'exact', improvement } })];
    return settled('kv', 0.45, { baseline: { live_output_tokens_per_second: tokens, columns } });
  };

  const other = '2,817 under round-robin (recorded)';

  it.each([
    ['ticked where the load generator shows a difference', 3168, true, `3,168 tokens/s live, ${other}`],
    ['not claimed within chance', 2830, false, `Not certain: 2,830 tokens/s live, ${other}.`],
    ['reported as fewer where they are', 2000, true, 'Lower now; say so'],
  ])('are %s', (_, tokens, decided, why) => {
    const found = seen('tokens', kv(tokens, decided));
    expect(found).toMatchObject({ done: tokens === 3168, why: expect.stringContaining(why) });
  });
});

describe('uneven in-flight', () => {
  const cluster = (spread?: number) => ({ ...snapshot().lanes[0].cluster, spread });
  /** A settled minute, sampled each second. */
  const minute = (from: Progress, mode: 'kv' | 'round_robin', hour: number, spread?: number) =>
    Array.from({ length: 60 }, (_, i) => ({
      at: `${10 + hour}:${String(i).padStart(2, '0')}`,
      lane: settled(mode, 0.5, { cluster: cluster(spread) }),
    })).reduce((progress, second) => see(progress, second), from);

  it('is the mean of a minute in each mode', () => {
    const first = minute(NO_PROGRESS, 'round_robin', 0, 12);
    expect(item('uneven', first, settled('round_robin', 0.5)).why).toMatch(/^Needs about a minute/);
    const both = minute(first, 'kv', 1, 30);
    expect(item('uneven', both)).toMatchObject({
      done: true,
      why:
        'At 60 conversations the busiest and the least busy worker differ by 30.0 requests on ' +
        'average; under round-robin by 12.0.',
    });
  });

  it('is not claimed where both are alike, or where it is not reported', () => {
    const alike = minute(minute(NO_PROGRESS, 'round_robin', 0, 12), 'kv', 1, 12);
    expect(item('uneven', alike).done).toBe(false);
    const silent = minute(minute(NO_PROGRESS, 'round_robin', 0), 'kv', 1);
    expect(item('uneven', silent).done).toBe(false);
  });
});

describe('a document of their own', () => {
  const shape = (openings: number) => ({ shape: { ...snapshot().lanes[0].state.shape, openings } });
  const turns = (first: number, second: number, third: number) => ({
    ttft_by_turn: [first, second, third].map((p50, i) => ({ turn: `${i + 1}` as const, p50, n: 20 })),
  });

  it('is ticked once there is an opening for each conversation', () => {
    const shared = settled('kv', 0.5, { state: { mode: 'kv', ...shape(10) } });
    expect(seen('own', shared)).toMatchObject({
      done: false,
      why: '10 opening texts are in circulation. Set “Opening texts” to “One each”.',
    });
    const own = settled('kv', 0.5, { state: { mode: 'kv', ...shape(0) } });
    expect(seen('own', own).done).toBe(true);
  });

  it('makes later turns slow again under round-robin, and only then is it ticked', () => {
    const lane = (mode: 'kv' | 'round_robin', openings: number, second: number) =>
      settled(mode, 0.6, { state: { mode, settling: false, ...shape(openings) }, ...turns(0.55, second, 0.5) });
    const blind = (one: LaneChange) => seen('blind', one);
    const why = expect.stringContaining('550 ms in the first turn, 540 ms in the second');
    expect(blind(lane('round_robin', 0, 0.54))).toMatchObject({ done: true, why });
    expect(blind(lane('round_robin', 0, 0.2)).why).toMatch(/^Not the case now/);
    expect(blind(lane('round_robin', 10, 0.54)).why).toMatch(/^Needs round-robin and one document per visitor/);
    expect(blind(lane('kv', 0, 0.54)).done).toBe(false);
  });

  it('derives the odds from the number of workers', () => {
    const workers = Array.from({ length: 4 }, (_, i) => ({ id: `${i}`, name: `w${i}`, gpus: [] }));
    const lane = settled('kv', 0.5, { cluster: { ...snapshot().lanes[0].cluster, workers } });
    expect(seen('blind', lane).why).toContain('another worker 3 times in 4');
  });
});

describe('the phases', () => {
  const speculating = (
    speculation: 'off' | 'draft' | 'eagle3' | 'not_recorded',
    itl: number,
    more: LaneChange = {}
  ) => {
    const base = settled('kv', 0.45, { ...more, state: { mode: 'kv', settling: false, speculation, ...more.state } });
    const live = { ...comparison().live, ...base.baseline?.live, itl: { p50: itl, p95: 2 * itl, n: 9000 } };
    return { ...base, baseline: { ...base.baseline, live } };
  };
  const cluster = { ...snapshot().lanes[0].cluster, speculation: { acceptance: 0.62, tokens_per_step: 2.4 } };

  it('are ticked by their measurements, with the gain over the phase before', () => {
    const off = see(NO_PROGRESS, { at: '01:00', lane: speculating('off', 0.026) });
    const draft = see(off, { at: '03:00', lane: speculating('draft', 0.018, { cluster }) });
    expect(ticked(draft).filter((id) => id.startsWith('phase'))).toEqual(['phase-2', 'phase-3a']);
    const { why } = item('phase-3a', draft);
    expect(why).toContain('median ITL 18.0 ms');
    expect(why).toContain('Accepted: 62 % of guesses, 2.40 tokens per step.');
    expect(why).toContain('Phase 2: TTFT p95 450 ms, median ITL 26.0 ms.');
  });

  it('are none where it is not known whether it speculates', () => {
    const lane = speculating('not_recorded', 0.026);
    expect(ticked(see(NO_PROGRESS, { at: '01:00', lane })).filter((id) => id.startsWith('phase'))).toEqual([]);
  });

  it('explain how to reach them, that they are not calibrated, or that they are unavailable', () => {
    const lane = speculating('off', 0.026);
    const progress = see(NO_PROGRESS, { at: '01:00', lane });
    expect(item('phase-3b', progress, lane).why).toBe(
      'Change to KV-aware with speculation “EAGLE-3”. The simulated cluster’s timing is then assumed: not calibrated.'
    );
    expect(item('phase-3a', progress, lane).why).toBe(
      'The mode driver “simulated” does not offer KV-aware with speculation “Draft model”.'
    );
    const settling = runs({ state: { mode: 'kv', speculation: 'eagle3' } });
    expect(item('phase-3b', NO_PROGRESS, settling).why).toBe('Settling: 30 s to go.');
  });

  it('keep figures of one speculation apart from those of another', () => {
    const first = see(NO_PROGRESS, { at: '01:00', lane: settled('round_robin', 0.65) });
    const lane = speculating('eagle3', 0.012);
    expect(item('improved', see(first, { at: '03:00', lane }), lane)).toMatchObject({
      done: false,
      why: 'Needs KV-aware routing, settled, and a round-robin figure at the same concurrency.',
    });
  });
});

describe('a change of mode', () => {
  const kv = runs({ state: { mode: 'kv' } });

  it.each([
    ['away from KV-aware routing does not count', [kv, runs()], false, /^Change the mode to KV-aware\.$/],
    ['to it stays ticked after a change back', [runs(), kv, runs()], true, /^Changed from Round-robin/],
    ['is missing where it was KV-aware from the beginning', [kv], false, /from the beginning/],
  ])('%s', (_, lanes, done, why) => {
    const progress = see(NO_PROGRESS, ...lanes.map((lane, i) => ({ at: `00:0${i}`, lane })));
    expect(item('changed', progress, lanes.at(-1))).toMatchObject({ done, why: expect.stringMatching(why) });
  });
});

describe('errors', () => {
  const totals = (ok: number, errors: number) => ({ ...snapshot().lanes[0].totals, ok, errors });
  const run = (ok: number, errors: number, started = START) => runs({ state: { started }, totals: totals(ok, errors) });

  it('untick the step, and stay counted over a new start', () => {
    let progress = see(NO_PROGRESS, { at: '00:05', lane: run(3, 0) });
    expect(item('errors', progress).done).toBe(true);
    progress = see(progress, { at: '00:06', lane: run(3, 2) });
    expect(item('errors', progress, run(3, 2))).toMatchObject({ done: false, why: '2 failed.' });
    progress = see(progress, { at: '01:00', lane: run(4, 1, time('00:59')) });
    expect(item('errors', progress, run(4, 1)).why).toBe('3 failed.');
  });

  it('before a reset do not count, nor do the answers', () => {
    const begun: Progress = { ...NO_PROGRESS, since: time('05:00') };
    let progress = see(begun, { at: '05:01', lane: run(100, 7) });
    expect(item('errors', progress, run(100, 7)).why).toBe('No turn has ended yet.');
    progress = see(progress, { at: '05:02', lane: run(101, 7) });
    expect(item('errors', progress).done).toBe(true);
    progress = see(progress, { at: '05:03', lane: run(101, 8) });
    expect(item('errors', progress, run(101, 8)).why).toBe('1 failed.');
  });
});

describe('two lanes', () => {
  const both = (main: LaneChange, twin: LaneChange) => {
    const [a] = snapshot(main).lanes;
    const [b] = snapshot(twin).lanes;
    return snapshot({}, { time: time('01:00'), lanes: [a, { ...b, name: 'twin' }] });
  };
  const itemsOf = (progress: Progress, shown: Snapshot) =>
    items(progress, shown).filter(({ id }) => id.startsWith('both'));

  it('have steps of their own, and one lane has none', () => {
    const shown = both(settled('kv', 0.4), settled('round_robin', 0.6));
    expect(itemsOf(observe(NO_PROGRESS, shown, 'main'), shown).map(({ done, why }) => [done, why])).toEqual([
      [true, expect.stringMatching(/^At .*: 60 conversations on each, KV-aware and Round-robin\.$/)],
      [true, expect.stringMatching(/KV-aware and Round-robin: TTFT p95 400 ms and 600 ms\.$/)],
    ]);
    expect(itemsOf(NO_PROGRESS, snapshot(settled('kv', 0.4)))).toEqual([]);
  });

  it.each([
    ['in one mode', settled('kv', 0.4)],
    ['in a mode that is not known', settled('kv', 0.4, { state: { mode: 'unknown' } })],
  ])('that run %s are not distinguished', (_, second) => {
    const shown = both(settled('kv', 0.4), second);
    expect(itemsOf(observe(NO_PROGRESS, shown, 'main'), shown).map(({ done, why }) => [done, why])).toEqual([
      [false, expect.stringMatching(/^Needs two different modes/)],
      [false, expect.stringMatching(/^Needs both/)],
    ]);
  });

  it('count as running until both have settled', () => {
    const shown = both(settled('kv', 0.4), runs());
    const found = itemsOf(observe(NO_PROGRESS, shown, 'main'), shown);
    expect(found.map(({ done }) => done)).toEqual([true, false]);
    expect(found[1].why).toBe('Not both lanes have settled yet.');
  });
});

describe('what happened while the guide was closed', () => {
  const event = (at: string, kind: string, text: string): LaneEvent => ({ id: at, time: time(at), kind, text });
  const since = see(NO_PROGRESS, { at: '00:00', lane: stopped });

  it('is no change where a mode becomes known', () => {
    const events = [
      event('03:02', 'mode_change', 'unknown to kv: the router’s own metrics report it'),
      event('03:01', 'start', '60 conversations, mode unknown'),
    ];
    const progress = restoreProgress(since, events, []);
    expect(ticked(progress)).toEqual(['started']);
    expect(item('started', progress).why).toContain('60 conversations, Mode unknown');
  });

  it('is restored from events', () => {
    const events = [
      event('04:00', 'step', 'step 4: 140 conversations, kv'),
      event('03:01', 'start', '60 conversations, kv'),
      event('03:00', 'mode_change', 'round_robin to kv'),
      event('01:00', 'start', '60 conversations, round_robin'),
    ];
    const progress = restoreProgress(since, events, []);
    expect(ticked(progress)).toEqual(['started', 'changed', 'raised']);
    expect(item('raised', progress).why).toContain('From 60 to 140');
    expect(restoreProgress(progress, events, [])).toBe(progress);
  });

  it('is not restored from earlier events, from cancelled changes, or from unknown kinds', () => {
    const later: Progress = { ...NO_PROGRESS, since: time('02:00') };
    const events = [
      event('03:02', 'mode_change', 'cancelled the change to kv'),
      event('03:01', 'mode_change', 'round_robin to kv: given up'),
      event('03:00', 'settings', 'round_robin to kv'),
      event('02:30', 'mode_change', 'kv/off to kv/eagle3'),
      event('01:00', 'start', '60 conversations, round_robin'),
    ];
    expect(restoreProgress(later, events, [])).toBe(later);
    expect(restoreProgress(NO_PROGRESS, events, [])).toBe(NO_PROGRESS);
  });

  it('counts no concurrency before the lowest as a raise', () => {
    const progress = see(since, { at: '05:00', lane: runs() });
    const events = [
      event('04:59', 'step', 'step 2: 60 conversations, round_robin'),
      event('01:00', 'start', '120 conversations, round_robin'),
    ];
    expect(item('raised', restoreProgress(progress, events, [])).done).toBe(false);
  });

  it('is restored from this target’s measurements', () => {
    const intervals = { ttft: { p95: [0.6, 0.7] }, tpot: {}, itl: {}, latency: {} } satisfies BaselineRow['intervals'];
    const here = { speculation: 'off', measured: time('02:00') } as const;
    const rows = [
      emptyRow(60, 'round_robin', { ...here, ttft: { p95: 0.65 }, kv_hit_ratio: 0.85, intervals }),
      emptyRow(60, 'kv', { ...here, ttft: { p95: 0.4 }, measured: '2026-11-19T10:00:00Z' }),
    ];
    const own: Baseline = { name: 'this target', title: '', kind: 'measured', deployment: {}, rows };
    const progress = restoreProgress(since, [], [own]);
    expect(ticked(progress)).toEqual(['baseline', 'phase-1']);
    const after = see(progress, { at: '05:00', lane: settled('kv', 0.5) });
    expect(item('improved', after).why).toContain('650 ms under round-robin (measured here)');
    const close = see(progress, { at: '05:00', lane: settled('kv', 0.595) });
    expect(item('improved', close, settled('kv', 0.595)).why).toMatch(/^Not certain/); // the intervals overlap
    expect(ticked(restoreProgress(since, [], [{ ...own, kind: 'imported' }]))).toEqual([]);
  });
});
