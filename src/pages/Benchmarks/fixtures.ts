import type {
  BaselineRow,
  Sweep,
  SweepList,
  SweepNow,
  SweepRequest,
  SweepSpan,
  SweepSummary,
  TrialDifference,
} from '../../client';

const slo = { ttft: 0.6, tpot: 0.06 };
const roundRobin = { mode: 'round_robin', speculation: 'off' } as const;
const kv = { mode: 'kv', speculation: 'off' } as const;

/** The default request of each kind. */
export const defaults = {
  trial: {
    kind: 'trial',
    title: '',
    modes: [roundRobin, kv],
    levels: [120],
    primary: 'ttft_p95',
    smallest: 0.05,
    warm_up: 0,
    span: 60,
    max_time: 3600,
    slo,
    seed: '1',
  },
  sweep: {
    kind: 'sweep',
    title: '',
    modes: [roundRobin, kv],
    levels: [60, 120, 180],
    repeats: 3,
    order: 'interleaved',
    warm_up: 60,
    span: 300,
    snapshots: 3,
    slo,
    seed: '1',
  },
  capacity: {
    kind: 'capacity',
    title: '',
    modes: [roundRobin, kv],
    levels: [60, 100, 140, 180],
    resolution: 5,
    span: 60,
    max_time: 14_400,
    slo,
    seed: '1',
  },
} satisfies Record<string, SweepRequest>;

/** A span that warms up. */
export const now: SweepNow = {
  number: 6,
  attempt: 1,
  arm: 'b',
  mode: kv,
  concurrency: 120,
  phase: 'warming_up',
  seconds: 20,
  elapsed_seconds: 60,
  turns: 0,
  warming_up: 14,
};

/** A row with every value that the page shows. */
export function row(mode: 'kv' | 'round_robin', concurrency: number, change: Partial<BaselineRow> = {}): BaselineRow {
  return {
    concurrency,
    mode,
    speculation: 'off',
    ttft: { p50: 0.25, p95: 0.5438 },
    tpot: { p50: 0.026, p95: 0.055 },
    tpot_derived: {},
    itl: {},
    latency: {},
    output_tokens_per_second: 3168,
    kv_hit_ratio: 0.713,
    n: 480,
    intervals: {
      ttft: { p50: [0.24, 0.26], p95: [0.51, 0.58] },
      tpot: { p95: [0.052, 0.058] },
      itl: {},
      latency: {},
      output_tokens_per_second: [3100, 3236],
      kv_hit_ratio: [0.7, 0.726],
    },
    ...change,
  };
}

/** A span that counts. */
export function span(number: number, change: Partial<SweepSpan> = {}): SweepSpan {
  return {
    number,
    attempt: 1,
    arm: 'a',
    mode: roundRobin,
    concurrency: 120,
    seed: '77',
    step: 40,
    started: '2026-11-20T09:50:00Z',
    counted_from: '2026-11-20T09:52:00Z',
    until: '2026-11-20T09:53:30Z',
    elapsed_seconds: 215,
    turns: 412,
    failed: 0,
    cold: 'emptied',
    ...change,
  };
}

/** A difference of a trial. */
export function difference(change: Partial<TrialDifference> = {}): TrialDifference {
  return {
    metric: 'ttft_p95',
    a: 0.725,
    b: 0.544,
    difference: -0.25,
    interval: [-0.31, -0.184],
    outcome: 'b_better',
    ...change,
  };
}

/** A trial in progress after four blocks. */
export function trial(change: Partial<Sweep> = {}): Sweep {
  return {
    id: 't1',
    lane: 'main',
    state: 'running',
    by: 'editor',
    asked: '2026-11-20T09:40:00Z',
    request: defaults.trial,
    progress: {
      spans: 7,
      spoiled: 1,
      seconds_used: 1200,
      seconds_left: 400,
      seconds_least: 120,
      seconds_most: 2400,
      span: now,
    },
    words: ['KV-aware routing has the lower TTFT p95 so far.'],
    program: '1.0',
    target: { url: 'http://127.0.0.1:8000' },
    deployment: {},
    workload: { turns: { min: 3, max: 5 }, max_tokens: 1024 },
    spans: [span(0), span(1, { spoiled: 'its caches were not cold' })],
    rows: [row('round_robin', 120, { ttft: { p50: 0.37, p95: 0.725 } }), row('kv', 120)],
    trial: {
      method: 'blocks',
      verdict: 'running',
      blocks: 4,
      primary: difference({ outcome: 'running', interval: [-0.4, 0.02] }),
      looks: [
        { blocks: 2, difference: -0.2, interval: [-0.7, 0.9] },
        { blocks: 3, difference: -0.22, interval: [-0.5, 0.2] },
        { blocks: 4, difference: -0.25, interval: [-0.4, 0.02] },
      ],
      boundaries: [-0.0476, 0.05],
      others: [
        difference({ metric: 'output_tokens_per_second', a: 2817, b: 3168, difference: 0.125, interval: [0.08, 0.17] }),
        difference({ metric: 'kv_hit_ratio', a: 0.123, b: 0.713, difference: 0.59, interval: [0.55, 0.63] }),
      ],
      assumed: -0.25,
    },
    ...change,
  };
}

/** Returns the summary of a sweep, as lists and snapshots contain it. */
export function summaryOf(sweep: Sweep): SweepSummary {
  const { id, lane, state, reason, by, asked, ended, request, progress, words, baseline } = sweep;
  return { id, lane, state, reason, by, asked, ended, request, progress, words, baseline };
}

/** Returns the API's list with these sweeps, and the limits. */
export function listOf(...sweeps: Sweep[]): SweepList {
  return {
    sweeps: sweeps.map(summaryOf),
    limits: {
      levels: { min: 1, max: 10_000 },
      smallest: { min: 0.001, max: 0.5 },
      repeats: { min: 1, max: 100 },
      warm_up: { min: 0, max: 3600 },
      span: { min: 1, max: 86_400 },
      snapshots: { min: 1, max: 100 },
      resolution: { min: 1, max: 1000 },
      max_time: { min: 1, max: 604_800 },
      'slo.ttft': { min: 0, max: 3600, above: true },
      'slo.tpot': { min: 0, max: 3600, above: true },
      title: { min: 0, max: 200 },
    },
    defaults: [defaults.trial, defaults.sweep, defaults.capacity],
    modes: [roundRobin, kv],
    metrics: ['ttft_p95', 'ttft_p50', 'tpot_p95', 'output_tokens_per_second', 'kv_hit_ratio', 'goodput'],
  };
}
