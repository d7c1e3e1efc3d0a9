// Written by `go test ./sidecar/api -update`, as part of `npm run generate`.

/** What a number may be, or how long a text in characters: from min to max, both included. */
export interface Limit {
  readonly min: number;
  readonly max: number;
  /** Min itself is too little. */
  readonly above?: boolean;
}

const table = {
  'baselines.cursor': { min: 0, max: 200 },
  'baselines.limit': { min: 1, max: 200 },
  burstiness: { min: 0.05, max: 100 },
  'comparison.baseline': { min: 0, max: 100 },
  'comparison.lane': { min: 0, max: 64 },
  concurrency: { min: 1, max: 100000 },
  'conversations.cursor': { min: 0, max: 200 },
  'conversations.from': { min: 0, max: 9223372036854775808 },
  'conversations.lane': { min: 0, max: 64 },
  'conversations.limit': { min: 1, max: 200 },
  'conversations.to': { min: 0, max: 9223372036854775808 },
  'conversations.topic': { min: 0, max: 200 },
  'decisions.lane': { min: 0, max: 64 },
  'decisions.limit': { min: 1, max: 1000 },
  default_baseline: { min: 0, max: 100 },
  'events.lane': { min: 0, max: 64 },
  'events.limit': { min: 1, max: 1000 },
  max_concurrency: { min: 1, max: 100000 },
  max_inflight: { min: 1, max: 100000 },
  max_tokens: { min: 1, max: 131072 },
  opening_tokens: { min: 200, max: 131072 },
  openings: { min: 0, max: 1000000 },
  'output_tokens.cv': { min: 0, max: 2 },
  'output_tokens.mean': { min: 0, max: 131072 },
  'ramp.seconds': { min: 1, max: 86400 },
  'shape.answer_tokens': { min: 0, max: 131072 },
  'shape.context_tokens': { min: 0, max: 10000000 },
  'shape.groups': { min: 0, max: 1000000 },
  'shape.mix': { min: 0, max: 200 },
  'shape.prefix_tokens': { min: 0, max: 131072 },
  'shape.suffix_tokens': { min: 0, max: 131072 },
  'shape.turns': { min: 0, max: 1000 },
  'shape.zipf': { min: 0, max: 4 },
  'slider.increment': { min: 1, max: 100000 },
  'slider.max': { min: 1, max: 100000 },
  'slider.min': { min: 1, max: 100000 },
  'slo.tpot': { min: 0, max: 3600, above: true },
  'slo.ttft': { min: 0, max: 3600, above: true },
  start_rate: { min: 0, max: 1000, above: true },
  subtitle: { min: 0, max: 200 },
  target_rps: { min: 0, max: 10000 },
  think_time: { min: 0, max: 3600 },
  title: { min: 0, max: 200 },
  'turns.max': { min: 1, max: 1000 },
  'turns.min': { min: 1, max: 1000 },
} satisfies Record<string, Limit>;

/** The path of a field, as the API's problems name it, or a parameter. */
export type LimitName = keyof typeof table;

/** What the API allows. Times are in seconds. */
export const limits: Record<LimitName, Limit> = table;
