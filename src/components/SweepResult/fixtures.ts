import type { Baseline, BaselineRow, Sweep, SweepSpan, TrialDifference } from '../../client';

/** A row of a sweep, with intervals a tenth wide on both sides. */
export function row(concurrency: number, mode: BaselineRow['mode'], ttft: number): BaselineRow {
  const around = (value: number): [number, number] => [value * 0.9, value * 1.1];
  const pair = (p50: number, p95: number) => ({ p50, p95 });
  const pairs = (p50: number, p95: number) => ({ p50: around(p50), p95: around(p95) });
  return {
    concurrency,
    mode,
    speculation: 'off',
    ttft: pair(ttft / 2, ttft),
    tpot: pair(0.02, 0.03),
    tpot_derived: {},
    itl: {},
    latency: {},
    output_tokens_per_second: 2500,
    kv_hit_ratio: 0.8,
    intervals: {
      ttft: pairs(ttft / 2, ttft),
      tpot: pairs(0.02, 0.03),
      itl: {},
      latency: {},
      output_tokens_per_second: around(2500),
      kv_hit_ratio: around(0.8),
    },
  };
}

/** A span that counts, of 90 seconds. */
function span(number: number, change: Partial<SweepSpan> = {}): SweepSpan {
  return {
    number,
    attempt: 1,
    mode: { mode: 'kv', speculation: 'off' },
    concurrency: 60,
    seed: '1',
    step: number + 1,
    started: '2026-11-20T10:00:00Z',
    counted_from: '2026-11-20T10:01:00Z',
    until: '2026-11-20T10:02:30Z',
    elapsed_seconds: 155,
    turns: 400,
    failed: 1,
    cold: 'emptied',
    row: row(60, 'kv', 0.4),
    ...change,
  };
}

/** A sweep of two levels in two modes that is done. */
export function sweep(change: Partial<Sweep> = {}): Sweep {
  return {
    id: 's1',
    lane: 'main',
    state: 'done',
    by: 'editor',
    asked: '2026-11-20T10:00:00Z',
    ended: '2026-11-20T11:00:00Z',
    request: {
      kind: 'sweep',
      modes: [
        { mode: 'round_robin', speculation: 'off' },
        { mode: 'kv', speculation: 'off' },
      ],
      levels: [60, 120],
      slo: { ttft: 0.6, tpot: 0.06 },
    },
    progress: { spans: 4, of: 4, spoiled: 1, seconds_used: 3000 },
    words: [],
    program: 'test',
    target: { url: 'http://127.0.0.1:8000', model: 'llama' },
    deployment: {},
    workload: { turns: { min: 5, max: 5 }, max_tokens: 1024, openings: 10, followup: 'built-in questioner' },
    spans: [span(0), span(1, { spoiled: '3 of 20 turns failed, the latest with timeout' }), span(1, { attempt: 2 })],
    rows: [row(60, 'round_robin', 0.7), row(60, 'kv', 0.4), row(120, 'round_robin', 0.9), row(120, 'kv', 0.5)],
    ...change,
  };
}

/** A difference of a trial. */
function difference(metric: string, change: Partial<TrialDifference> = {}): TrialDifference {
  return { metric, a: 0.7, b: 0.4, difference: -0.4286, interval: [-0.5, -0.35], outcome: 'b_better', ...change };
}

/** A trial that is decided. */
export function trial(change: Partial<Sweep> = {}): Sweep {
  const all = sweep();
  return sweep({
    request: { ...all.request, kind: 'trial', levels: [60], primary: 'ttft_p95', smallest: 0.05 },
    rows: all.rows.slice(0, 2),
    trial: {
      method: 'blocks',
      verdict: 'b_better',
      blocks: 6,
      primary: difference('ttft_p95'),
      looks: [
        { blocks: 2, difference: -0.3, interval: [-0.9, 5] },
        { blocks: 3, difference: -0.44, interval: [-0.62, -0.1] },
        { blocks: 6, difference: -0.4286, interval: [-0.5, -0.35] },
      ],
      boundaries: [-0.0476, 0.05],
      others: [
        difference('kv_hit_ratio', { a: 0.121, b: 0.884, difference: 0.763, interval: [0.751, 0.775] }),
        difference('tpot_p95', {
          a: 0.03,
          b: 0.0301,
          difference: 0.0033,
          interval: [-0.01, 0.016],
          outcome: 'no_difference',
        }),
      ],
    },
    ...change,
  });
}

/** A trial of three modes: KV-aware is the best, and the others are alike. */
export function ranked(change: Partial<Sweep> = {}): Sweep {
  const [roundRobin, kv, leastLoaded] = (['round_robin', 'kv', 'least_loaded'] as const).map((mode) => ({
    mode,
    speculation: 'off' as const,
  }));
  const usual = trial();
  const place = { mean: 0.7, may_be_best: false, failures: { failed: 1, ended: 900 } };
  return trial({
    request: { ...usual.request, modes: [roundRobin, kv, leastLoaded], question: 'best' },
    trial: {
      ...usual.trial!,
      verdict: 'best',
      ranking: {
        question: 'best',
        places: [
          { ...place, arm: 'b', mode: kv, place: [1, 1], mean: 0.4, may_be_best: true },
          { ...place, arm: 'c', mode: leastLoaded, place: [2, 3], left_after: 2 },
          { ...place, arm: 'a', mode: roundRobin, place: [2, 3], left_after: 2 },
        ],
        pairs: [
          { a: 'c', b: 'b', blocks: 2, primary: difference('ttft_p95'), others: [] },
          {
            a: 'a',
            b: 'b',
            blocks: 2,
            primary: difference('ttft_p95', { interval: undefined }),
            others: [],
            more: 'b',
          },
          {
            a: 'a',
            b: 'c',
            blocks: 2,
            primary: difference('ttft_p95', { difference: -0.01, interval: [-0.03, 0.02], outcome: 'no_difference' }),
            others: [],
          },
        ],
        groups: [{ arms: ['c', 'a'] }],
      },
    },
    ...change,
  });
}

/** A recorded table with one of the levels. */
export const recorded: Baseline = {
  name: 'recorded',
  title: '3 × H200',
  kind: 'recorded',
  deployment: {},
  rows: [
    { ...row(60, 'kv', 0.4458), speculation: 'not_recorded', intervals: undefined },
    { ...row(240, 'kv', 3), speculation: 'not_recorded', intervals: undefined },
    { ...row(60, 'least_loaded', 9), speculation: 'not_recorded', intervals: undefined },
  ],
};
