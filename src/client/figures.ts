// Written by `go test ./sidecar/api -update`, as part of `npm run generate`.

/** What is the same of a key figure on every screen. */
export interface FigureInfo {
  readonly name: string;
  /** What it is, in sentences. */
  readonly help: string;
  readonly unit:
    | 's'
    | 'ratio'
    | 'requests/s'
    | 'tokens/s'
    | 'tokens'
    | 'bytes'
    | 'requests'
    | 'conversations'
    | 'J'
    | '$';
  /** The direction in which it improves; absent: neither. */
  readonly better?: 'lower' | 'higher';
  /** The objective for its p95. */
  readonly slo?: 'ttft' | 'tpot';
  /** Whether the load generator's own error may have either sign. */
  readonly bothWays?: boolean;
}

const table = {
  ttft: {
    name: 'TTFT',
    help: 'Time to first token: from sending a request to its first content.',
    unit: 's',
    better: 'lower',
    slo: 'ttft',
  },
  tpot: {
    name: 'TPOT',
    help: 'Time per output token: (latency − TTFT) / (output tokens − those of the first chunk) per request.',
    unit: 's',
    better: 'lower',
    slo: 'tpot',
    bothWays: true,
  },
  itl: {
    name: 'ITL',
    help: 'Inter-token latency: the gap between two tokens as the client sees it, one value per token.',
    unit: 's',
    better: 'lower',
    bothWays: true,
  },
  latency: {
    name: 'End-to-end latency',
    help: 'From sending a request to the last content of its answer.',
    unit: 's',
    better: 'lower',
  },
  requests_per_second: {
    name: 'Requests/s',
    help: 'Completed requests per second. One request is one turn.',
    unit: 'requests/s',
    better: 'higher',
  },
  requests: {
    name: 'Requests',
    help: 'Completed requests since the start.',
    unit: 'requests',
  },
  output_tokens_per_second: {
    name: 'Output tokens/s',
    help: 'Output tokens per second of all workers together.',
    unit: 'tokens/s',
    better: 'higher',
  },
  kv_hit_ratio: {
    name: 'KV hit rate',
    help: 'Cached prompt tokens / all prompt tokens.',
    unit: 'ratio',
    better: 'higher',
  },
  kv_predicted_ratio: {
    name: 'Predicted hit rate',
    help: 'The hit rate the router expected from its index, before the engine looked up its cache.',
    unit: 'ratio',
    better: 'higher',
  },
  kv_achievable_ratio: {
    name: 'Achievable hit rate',
    help: 'The hit rate if every turn went to the worker with the longest cached prefix, whatever its load.',
    unit: 'ratio',
    better: 'higher',
  },
  achieved_share: {
    name: 'Share of the achievable hit rate',
    help: 'The measured hit rate / that of the best placement, which knows all caches and keeps loads even.',
    unit: 'ratio',
    better: 'higher',
  },
  queued: {
    name: 'Queued',
    help: 'Requests that wait at the router and at the engines. A Dynamo frontend counts each until its first token.',
    unit: 'requests',
    better: 'lower',
  },
  inflight: {
    name: 'In flight',
    help: 'Requests that were sent to a worker and are not finished.',
    unit: 'requests',
  },
  errors: {
    name: 'Errors',
    help: 'Failed requests since the start.',
    unit: 'requests',
    better: 'lower',
  },
  error_ratio: {
    name: 'Error rate',
    help: 'Failed requests / finished requests. Cancelled requests do not count.',
    unit: 'ratio',
    better: 'lower',
  },
  awaiting: {
    name: 'Awaiting first token',
    help: 'Turns that were sent and have no first token yet.',
    unit: 'requests',
  },
  awaiting_oldest_seconds: {
    name: 'Longest wait for a first token',
    help: 'How long the oldest turn without a first token has waited.',
    unit: 's',
    better: 'lower',
  },
  concurrency: {
    name: 'Concurrency',
    help: 'Conversations in progress at the same time.',
    unit: 'conversations',
  },
  goodput: {
    name: 'Goodput',
    help: 'Requests that met every SLO, per second or as a share.',
    unit: 'ratio',
    better: 'higher',
  },
  acceptance_rate: {
    name: 'Acceptance rate',
    help: 'Share of drafted tokens that the large model accepts.',
    unit: 'ratio',
    better: 'higher',
  },
  tokens_per_step: {
    name: 'Tokens per step',
    help: 'Tokens per forward pass of the large model: one without speculation, at most one more than drafted with it.',
    unit: 'tokens',
    better: 'higher',
  },
  gpu_memory_bytes: {
    name: 'GPU memory',
    help: 'GPU memory in use: the weights, the KV cache, which engines reserve at startup, and temporary buffers.',
    unit: 'bytes',
    better: 'lower',
  },
  joules_per_million_tokens: {
    name: 'Energy per million tokens',
    help: 'Energy of the workers’ GPUs per million output tokens.',
    unit: 'J',
    better: 'lower',
  },
  joules_per_good_turn: {
    name: 'Energy per turn within the SLOs',
    help: 'Energy of the workers’ GPUs per turn that met every SLO.',
    unit: 'J',
    better: 'lower',
  },
  dollars_per_million_tokens: {
    name: 'Price per million tokens',
    help: 'Price of the workers’ GPUs per million output tokens, by deployment.gpu_hour.',
    unit: '$',
    better: 'lower',
  },
  dollars_per_good_turn: {
    name: 'Price per turn within the SLOs',
    help: 'Price of the workers’ GPUs per turn that met every SLO, by deployment.gpu_hour.',
    unit: '$',
    better: 'lower',
  },
  tokens_per_second_per_gpu: {
    name: 'Tokens/s per GPU',
    help: 'Output tokens per second / GPUs of the workers.',
    unit: 'tokens/s',
    better: 'higher',
  },
  tokens_per_second_per_user: {
    name: 'Tokens/s per user',
    help: '1 / median TPOT: the speed at which a user sees an answer being written.',
    unit: 'tokens/s',
    better: 'higher',
  },
} satisfies Record<string, FigureInfo>;

/** A key figure, as the API names it. */
export type FigureKey = keyof typeof table;

/** The key figures. */
export const figures: Record<FigureKey, FigureInfo> = table;

/** The latencies of a turn, which have percentiles. */
export const times = [
  'ttft',
  'tpot',
  'itl',
  'latency',
] as const satisfies FigureKey[];

/** A latency of a turn. */
export type TimeKey = (typeof times)[number];

/** The fields of a turn that files have, in the order of the fields. */
export const turnFields = [
  'lane',
  'conversation',
  'number',
  'request_id',
  'step',
  'concurrency',
  'arm',
  'mode',
  'speculation',
  'counted',
  'status',
  'error_class',
  'error_message',
  'started',
  'ended',
  'ttft',
  'first_answer',
  'tpot',
  'itl_p50',
  'itl_p95',
  'itl_estimated',
  'in_bursts',
  'latency',
  'late',
  'behind',
  'planned_input',
  'planned_output',
  'prompt_tokens',
  'cached_tokens',
  'output_tokens',
  'token_source',
  'finish_reason',
  'worker',
  'predicted_ratio',
  'queue_depth',
  'server_ttft',
] as const;
