import type { Vendor } from '../../../vendor';

/** A word of the field. */
export interface Term {
  id: string;
  term: string;
  /** What it is looked for by, too. */
  also?: string;
  text: string;
}

const own: Term[] = [
  {
    id: 'acceptance-rate',
    term: 'Acceptance rate',
    text: 'Share of drafted tokens that the large model accepts. Now {live.acceptance}.',
  },
  {
    id: 'achievable',
    term: 'Achievable hit rate',
    text: 'The hit rate, had each turn gone to the worker with the longest cached beginning, whatever its load.',
  },
  {
    id: 'aggregated',
    term: 'Aggregated serving',
    text: 'Each worker does prefill and decode. The recorded runs were made so.',
  },
  {
    id: 'awaiting',
    term: 'Awaiting first token',
    text: 'Turns that have been sent and have seen no token yet. They are not in the percentiles before they end.',
  },
  {
    id: 'baseline',
    term: 'Baseline',
    text: 'Recorded results by level, mode and deployment. Live figures are put beside the one at the same concurrency.',
  },
  {
    id: 'block',
    term: 'Block',
    text: 'A fixed number of tokens whose keys and values are cached as one.',
  },
  {
    id: 'block-size',
    term: 'Block size',
    also: 'DYN_KV_CACHE_BLOCK_SIZE',
    text: 'How many tokens a block has. The router is told by DYN_KV_CACHE_BLOCK_SIZE, and the engine must use the same number: otherwise the router looks for blocks that nobody has.',
  },
  {
    id: 'capacity-search',
    term: 'Capacity search',
    text: 'Measures levels, first coarsely and then around the first that misses, until it is certain how many conversations each mode sustains within the SLOs, and where the modes cross.',
  },
  {
    id: 'closed-loop',
    term: 'Closed loop',
    text: 'The next turn is sent when the last one has been answered. A slow server is asked less often; the clients do not pile up.',
  },
  { id: 'concurrency', term: 'Concurrency', text: 'Conversations kept in progress at a time. What the slider sets.' },
  {
    id: 'conversation',
    term: 'Conversation',
    text: 'Several turns on one starter. The whole history is sent again with each of them.',
  },
  {
    id: 'cost',
    term: 'Cost',
    text: 'What the router works out for each worker: weight × blocks to compute + blocks in use there. The lowest wins.',
  },
  {
    id: 'counted',
    term: 'Counted turn',
    text: 'A turn that began and ended within one settled step. Only these are compared.',
  },
  {
    id: 'decode',
    term: 'Decode',
    text: 'The second part of a request: one token after the other. It is bound by memory speed, and makes up TPOT.',
  },
  { id: 'deployment', term: 'Deployment', text: 'What serves: engine, model, GPU, number of workers, speculation.' },
  {
    id: 'disaggregated',
    term: 'Disaggregated serving',
    text: 'Prefill and decode on workers of their own. Dynamo can; the recorded runs did not.',
  },
  {
    id: 'discovery-plane',
    term: 'Discovery plane',
    also: 'kubernetes crd endpointslices etcd dynamoworkermetadata',
    text: 'How Dynamo’s parts find each other. On Kubernetes through custom resources (DynamoWorkerMetadata, a CRD) and EndpointSlices, so that no etcd is needed; a pod that ends disappears from them by itself.',
  },
  {
    id: 'draft-model',
    term: 'Draft model',
    also: 'speculative',
    text: 'A small model that guesses the next tokens, for the large one to check in one pass.',
  },
  {
    id: 'eagle3',
    term: 'EAGLE-3',
    also: 'speculative',
    text: 'A prediction head on the large model’s own inner states, in the place of a draft model.',
  },
  { id: 'latency', term: 'End-to-end latency', also: 'e2e', text: 'From sending a request to its last content.' },
  {
    id: 'event-plane',
    term: 'Event plane',
    also: 'nats zmq',
    text: 'How workers tell the router what they store and drop, over NATS or ZMQ. Without it no KV-aware routing.',
  },
  {
    id: 'event-publishing',
    term: 'Event publishing',
    also: '--publish-events-and-metrics kv events',
    text: 'A worker announces every block it stores or drops only when told to; with Dynamo’s TensorRT-LLM workers by --publish-events-and-metrics. Without it the router works on guesses.',
  },
  { id: 'fp8', term: 'FP8', text: 'Numbers of eight bits: half the memory of FP16, for weights and cache.' },
  { id: 'goodput', term: 'Goodput', text: 'Requests that met every SLO, per second or as a share.' },
  {
    id: 'gpu-memory',
    term: 'GPU memory',
    also: 'vram framebuffer fb hbm dcgm',
    text: 'What of a GPU’s memory is in use: the weights, which stay, the KV cache, which engines set aside at the start, and what a step needs in passing. It is therefore high from the beginning.',
  },
  {
    id: 'gpu-utilisation',
    term: 'GPU utilisation',
    also: 'utilization dcgm',
    text: 'The share of time in which a GPU computes anything at all, as NVIDIA’s DCGM exporter tells. Decode waits for memory more than it computes, so a busy server need not show a full bar.',
  },
  {
    id: 'grove',
    term: 'Grove',
    text: 'NVIDIA’s addition to Kubernetes that groups, orders and scales the pods of an inference deployment.',
  },
  { id: 'inflight', term: 'In-flight', text: 'Requests that have been handed to a worker and are not finished.' },
  {
    id: 'chunk-latency',
    term: 'Inter-chunk latency',
    text: 'The plain gap between two streamed chunks, however many tokens a chunk has. Not ITL.',
  },
  {
    id: 'interpolated',
    term: 'Interpolated',
    text: 'Reckoned from the two nearest recorded levels, because this one was not recorded.',
  },
  {
    id: 'interval',
    term: 'Interval (95 %)',
    text: 'Where the true value lies, as far as so many turns can tell: turns that share a worker resemble each other, so four spans of time are compared, not single turns. A difference that may be none reads “no difference shown”; where there is no interval yet, “too variable to say”.',
  },
  {
    id: 'interval-all-looks',
    term: 'Interval over all looks',
    also: 'confidence sequence',
    text: 'An interval that holds however often somebody looks and whenever the trial stops. It is wider than one that is read once, at a time fixed before.',
  },
  {
    id: 'itl',
    term: 'ITL',
    also: 'inter-token latency',
    text: 'Inter-token latency: the gap between two tokens as the client sees it. It was not recorded; what old tables call so is TPOT.',
  },
  { id: 'kai', term: 'KAI Scheduler', text: 'Places groups of pods on GPUs all at once or not at all.' },
  {
    id: 'kv-aware',
    term: 'KV-aware routing',
    also: 'kv mode',
    text: 'Sends a request to where most of its beginning is cached, load considered.',
  },
  {
    id: 'kv-cache',
    term: 'KV cache',
    also: 'key value',
    text: 'Keys and values of attention for tokens already seen. With it they need not be computed again.',
  },
  {
    id: 'kvbm',
    term: 'KVBM',
    also: 'kv block manager',
    text: 'Dynamo’s KV block manager. It moves blocks that do not fit from the GPU to main memory, disk or further.',
  },
  {
    id: 'hit-rate',
    term: 'KV hit rate',
    also: 'cache hit',
    text: 'Cached prompt tokens / all prompt tokens. The card and the curve show the last 60 s. This step: {live.hit}.',
  },
  {
    id: 'indexer',
    term: 'KV indexer',
    text: 'The router’s part that keeps the prefix tree up to date from the events.',
  },
  {
    id: 'publisher',
    term: 'KV publisher',
    text: 'The worker’s part that sends an event for every block stored or dropped.',
  },
  {
    id: 'least-loaded',
    term: 'Least loaded',
    text: 'Sends a request to the worker with the least to do, whatever it has cached.',
  },
  { id: 'level', term: 'Level', text: 'A concurrency that a benchmark was run at. Recorded: {rec.levels}.' },
  {
    id: 'mode',
    term: 'Mode',
    text: 'How requests are routed: KV-aware, round-robin or least loaded. Now {live.mode}.',
  },
  { id: 'nixl', term: 'NIXL', text: 'NVIDIA’s library that moves KV caches between workers quickly.' },
  {
    id: 'openings',
    term: 'Openings',
    also: 'documents starters',
    text: 'How many different opening texts are in circulation. Now {live.openings}. Few: every worker soon holds them all. One for each conversation: only its own worker does.',
  },
  {
    id: 'output-tokens',
    term: 'Output tokens',
    text: 'As the server counts them; where it does not, the streamed chunks are counted, and it is said.',
  },
  { id: 'overlap', term: 'Overlap', text: 'The blocks of a request’s beginning that a worker has cached.' },
  {
    id: 'overlap-weight',
    term: 'Overlap weight',
    text: 'How much computing counts against load in the cost. More: more cache hits. Less: evener load.',
  },
  {
    id: 'p50',
    term: 'p50, p95',
    also: 'median percentile',
    text: 'Half of all requests are faster than p50 (the median), 95 of 100 are faster than p95.',
  },
  {
    id: 'phase',
    term: 'Phase',
    also: '1 2 3a 3b story',
    text: 'A step of the story: round-robin, KV-aware, KV-aware with a draft model, KV-aware with EAGLE-3. Each changes one thing.',
  },
  { id: 'planner', term: 'Planner', text: 'Dynamo’s part that adds and removes workers as the load asks for.' },
  {
    id: 'predicted',
    term: 'Predicted hit rate',
    text: 'What the router expected from its index, before the engine looked.',
  },
  {
    id: 'prefill',
    term: 'Prefill',
    text: 'The first part of a request: the prompt is computed. It makes up most of TTFT, and a cache saves it.',
  },
  {
    id: 'prefix-caching',
    term: 'Prefix caching',
    text: 'Using cached blocks again for prompts that begin alike. It ends at the first token that differs.',
  },
  { id: 'queued', term: 'Queued', text: 'Requests at the frontend without a first token. Now {live.queued}.' },
  {
    id: 'radix-tree',
    term: 'Radix tree',
    also: 'prefix tree',
    text: 'A tree of beginnings. Each node says which workers have it cached.',
  },
  {
    id: 'request-plane',
    term: 'Request plane',
    also: 'tcp http nats dyn_request_plane',
    text: 'How requests and tokens travel between Dynamo’s parts: over TCP unless set otherwise, or over HTTP/2 or NATS. It is chosen apart from the event plane.',
  },
  {
    id: 'router-mode',
    term: 'DYN_ROUTER_MODE',
    also: 'routing mode environment variable round_robin round-robin kv',
    text: 'The environment variable of Dynamo’s frontend that sets how it routes: “kv”, or round-robin, spelt “round_robin” by older deployments and “round-robin” by newer ones. It is read at the start, so a change restarts the frontend.',
  },
  { id: 'round-robin', term: 'Round-robin', text: 'Workers take turns. Nobody looks at caches or load.' },
  {
    id: 'temperature',
    term: 'Router temperature',
    text: 'Above zero the router draws among workers, the cheaper the likelier. At zero the cheapest gets it.',
  },
  {
    id: 'rps',
    term: 'RPS',
    also: 'requests per second',
    text: 'Finished requests per second. One request is one turn. The card shows the last 60 s. This step: {live.rps}.',
  },
  {
    id: 'settling',
    term: 'Settling',
    text: 'After a change, until a minute of counted turns exists. Nothing is compared before.',
  },
  { id: 'skew', term: 'Skew', text: 'The busiest worker’s requests / the mean.' },
  {
    id: 'slo',
    term: 'SLO',
    also: 'sla objective',
    text: 'Service level objective. TTFT p95 up to {slo.ttft}, TPOT p95 up to {slo.tpot}.',
  },
  {
    id: 'speculation',
    term: 'Speculation',
    also: 'speculative decoding',
    text: 'Tokens are guessed cheaply and checked together. The result is the same, only sooner. Now {live.speculation}.',
  },
  { id: 'spread', term: 'Spread', text: 'Requests of the busiest worker − those of the idlest. Now {live.spread}.' },
  {
    id: 'starter',
    term: 'Starter',
    text: 'The long text that opens a conversation. Those on one starter begin alike to the byte.',
  },
  { id: 'step', term: 'Step', text: 'A span in which concurrency, mode and workload stay as they are.' },
  {
    id: 'sustained',
    term: 'Sustained concurrency',
    text: 'The highest tested level such that it and every lower one meet all SLOs. Recorded: {rec.kv.sustained} under KV-aware routing, {rec.rr.sustained} under round-robin.',
  },
  {
    id: 'sweep',
    term: 'Sweep',
    text: 'Measures each mode at each level, several times, each time from cold caches. The recorded tables are sweeps.',
  },
  {
    id: 'tensor-parallel',
    term: 'Tensor parallelism (TP)',
    text: 'One model cut over several GPUs that work on each token together.',
  },
  {
    id: 'tensorrt-llm',
    term: 'TensorRT-LLM',
    also: 'trtllm trt-llm engine nvidia',
    text: 'NVIDIA’s engine for language models: it computes, batches requests and keeps the KV cache. Dynamo also drives vLLM and SGLang.',
  },
  {
    id: 'tokens-per-step',
    term: 'Tokens per step',
    text: 'Tokens that one pass of the large model yields; one without speculation. Now {live.tokens-per-step}.',
  },
  {
    id: 'tops',
    term: 'TOPS',
    also: 'tokens per second throughput',
    text: 'Output tokens per second of all workers together. The card shows the last 60 s. This step: {live.tokens}.',
  },
  {
    id: 'tpot',
    term: 'TPOT',
    also: 'time per output token',
    text: 'Time per output token: (latency − TTFT) / (output tokens − 1), one value per request. p95 now {live.tpot.p95}.',
  },
  {
    id: 'trial',
    term: 'Trial',
    text: 'Two modes in turns at one concurrency, in pairs, until the difference in one metric, chosen before the start, is decided.',
  },
  {
    id: 'ttft',
    term: 'TTFT',
    also: 'time to first token',
    text: 'Time to first token: from sending a request to its first content. p95 now {live.ttft.p95}.',
  },
  { id: 'turn', term: 'Turn', text: 'One request and its answer.' },
  {
    id: 'window',
    term: 'Window',
    text: 'The last minute. Live figures are about the turns that ended in it; beside a baseline they reach back up to five minutes of the present step.',
  },
];

/** All terms by the alphabet, the vendor's among them. */
export const glossary = ({ terms }: Vendor): Term[] =>
  [...own, ...terms].sort((a, b) => a.term.localeCompare(b.term, 'en'));
