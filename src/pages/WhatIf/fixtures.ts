import type {
  SimulationFigures,
  SimulationList,
  SimulationPoint,
  SimulationProfile,
  SimulationResult,
} from '../../client';

/** The recorded request, with every field. */
export const defaults = {
  profile: 'h200-tp1',
  levels: [60, 80, 100],
  modes: ['kv', 'round_robin'],
  seeds: 2,
  first_seed: 1,
  shape: { preset: 'recorded' },
  trace: false,
  arrivals: 'poisson',
  burstiness: 1,
  max_inflight: 1000,
  openings: 10,
  opening_tokens: 0,
  turns: { min: 5, max: 5 },
  output_tokens: { mean: 880, cv: 0.17 },
  max_tokens: 1024,
  question_tokens: { mean: 12, cv: 0 },
  think_time: 0,
  start_rate: 10,
  workers: 3,
  max_batch_size: 64,
  block_size: 32,
  kv_tokens: 400_000,
  speculation: 'not_recorded',
  overlap_weight: 1,
  temperature: 0,
  router_decode_active_request_weight: 0,
  router_track_output_blocks: false,
  router_assume_kv_reuse: true,
} satisfies SimulationResult['request'];

/** A profile that was fitted to the recorded table of that name. */
export const profile: SimulationProfile = {
  name: 'h200-tp1',
  title: '3 × H200',
  source: 'built in',
  deployment: {},
  calibrated: true,
  basis: 'Fitted to the recorded table.',
  baseline: 'h200',
  errors: { ttft_p50: 0.031, hit_ratio: 0.024 },
  speculations: [
    { speculation: 'not_recorded', calibrated: true, basis: 'as recorded', tokens_per_step: 1 },
    { speculation: 'eagle3', calibrated: false, basis: 'assumed', tokens_per_step: 2.4 },
  ],
  defaults,
  presets: [
    { name: 'as-recorded', title: 'As recorded', description: 'The recorded deployment.', request: {} },
    {
      name: 'own-documents',
      title: 'One document per user',
      description: 'No two users share a text.',
      request: { openings: 0 },
    },
  ],
};

/** The limits and profiles that the load generator offers. */
export const list: SimulationList = {
  available: true,
  profiles: [profile],
  limits: {
    levels: { min: 1, max: 10_000 },
    seeds: { min: 1, max: 12 },
    workers: { min: 1, max: 256 },
    openings: { min: 0, max: 1_000_000 },
    'turns.min': { min: 1, max: 50 },
    'turns.max': { min: 1, max: 50 },
    start_rate: { min: 0, max: 1000, above: true },
  },
  max_levels: 40,
  max_work: 150_000,
  simulations: [],
};

const figure = (mean: number) => ({ mean, low: 0.9 * mean, high: 1.1 * mean });

/** The results of a level with this TTFT p95 in seconds. */
function point(concurrency: number, mode: 'kv' | 'round_robin', ttft: number): SimulationPoint {
  const figures: SimulationFigures = {
    ttft_p50: figure(ttft / 2),
    ttft_p95: figure(ttft),
    hit_ratio: figure(mode === 'kv' ? 0.91 : 0.85),
    largest_queue_seconds: figure(1.25),
    queued_seconds: figure(ttft / 8),
    prefill_seconds: figure(ttft / 4),
    decode_seconds: figure(20),
  };
  return { concurrency, mode, seeds: 2, basis: 'simulated', figures };
}

/** A simulation that has computed both modes at the first two levels. */
export function simulation(change: Partial<SimulationResult> = {}): SimulationResult {
  return {
    id: '7',
    request: defaults,
    runs: 12,
    by: 'ann',
    asked: '2026-11-20T10:00:00Z',
    basis: 'simulated',
    calibrated: true,
    notes: [],
    progress: { state: 'running', ahead: 0, done: 8, of: 12, seconds_left: 3.2 },
    points: [
      point(60, 'kv', 0.3),
      point(60, 'round_robin', 0.65),
      point(80, 'kv', 0.55),
      point(80, 'round_robin', 0.7),
    ],
    explanation: [],
    ...change,
  };
}

/** The same simulation, complete. */
export const done = simulation({
  progress: { state: 'done', ahead: 0, done: 12, of: 12 },
  points: [...simulation().points, point(100, 'kv', 3), point(100, 'round_robin', 0.8)],
  explanation: ['KV-aware routing herds from 100 on.'],
});
