import type { Shadow } from '../../client';

/** An account of other routers under KV-aware routing, with an error of half a point. */
export function shadow(change: Partial<Shadow> = {}): Shadow {
  return {
    lane: 'main',
    source: 'token_ids',
    since: '2026-11-20T09:40:00Z',
    seconds: 60,
    requests: 276,
    prompt_tokens: 1_450_000,
    lost: 0,
    workers: 3,
    block_tokens: 32,
    worker_blocks: 4096,
    capacity_from: 'the cluster’s metrics',
    answers_reused: false,
    measured: { hit_ratio: 0.713, prefill_tokens: 416_150, inflight_spread: 6.2 },
    policies: [
      {
        policy: 'round_robin',
        title: 'Round-robin',
        in_force: false,
        figures: { hit_ratio: 0.31, prefill_tokens: 1_000_500, inflight_spread: 3.1 },
      },
      {
        policy: 'kv',
        title: 'KV-aware',
        in_force: true,
        figures: { hit_ratio: 0.718, prefill_tokens: 408_900, inflight_spread: 6.4 },
      },
      {
        policy: 'best',
        title: 'Best possible: one cache of all workers’ size',
        in_force: false,
        figures: { hit_ratio: 0.82, prefill_tokens: 261_000 },
      },
    ],
    causes: [
      { kind: 'found', tokens: 1_033_850, share: 0.713, text: '71.3 % of the prompt tokens were found' },
      {
        kind: 'elsewhere',
        tokens: 416_150,
        share: 0.287,
        text: '28.7 % were on other workers',
        remedy: 'see its policy',
      },
    ],
    work: {
      workers: [
        { worker: 'a', turns: 30, uncached_tokens: 9000 },
        { worker: 'b', turns: 28, uncached_tokens: 1000 },
      ],
      skew: 1.8,
      hot_prefixes: [{ name: 'You are a clerk', share: 0.6, worker: 'a', worker_share: 0.9 }],
      text: 'worker a computed 90.0 % of the prompt tokens that were not cached',
      remedy: 'let the router copy this beginning',
    },
    ttft: [
      { name: 'router', seconds: 0.02, text: 'router and network' },
      { name: 'prefill', seconds: 0.3, text: 'computing the prompt' },
      { name: 'rest', seconds: -0.001, text: 'unexplained' },
    ],
    cache_error: 0.005,
    choices: { turns: 1000, agreed: 900, ties: 40, clear: 600, clear_agreed: 594 },
    diagnoses: [
      { rule: 'one_worker_busiest', text: 'Worker pod-0 was the busiest for 180 of the last 180 s.' },
    ],
    ...change,
  };
}
