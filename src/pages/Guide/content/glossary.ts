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
    text: 'The hit rate if every turn went to the worker with the longest cached prefix, whatever its load.',
  },
  {
    id: 'aggregated',
    term: 'Aggregated serving',
    text: 'Each worker does both prefill and decode. The recorded runs used it.',
  },
  {
    id: 'awaiting',
    term: 'Awaiting first token',
    text: 'Turns that were sent and have no first token yet. They enter the percentiles only when they end.',
  },
  {
    id: 'baseline',
    term: 'Baseline',
    text: 'Recorded results by level, mode and deployment. Live figures are compared with the baseline at the same concurrency.',
  },
  {
    id: 'block',
    term: 'Block',
    text: 'A fixed number of tokens whose keys and values are cached as one unit.',
  },
  {
    id: 'block-size',
    term: 'Block size',
    also: 'DYN_KV_CACHE_BLOCK_SIZE',
    text: 'Tokens per block. The router reads it from DYN_KV_CACHE_BLOCK_SIZE, and the engine must use the same value; otherwise the router looks for blocks that no worker has.',
  },
  {
    id: 'capacity-search',
    term: 'Capacity search',
    text: 'Measures levels, first coarsely and then around the first one that misses an SLO, until it is clear how many conversations each mode sustains within the SLOs and where the modes cross.',
  },
  {
    id: 'closed-loop',
    term: 'Closed loop',
    text: 'The next turn is sent only after the previous one was answered. A slow server gets fewer requests; clients do not pile up.',
  },
  { id: 'concurrency', term: 'Concurrency', text: 'Conversations in progress at the same time. The slider sets it.' },
  {
    id: 'conversation',
    term: 'Conversation',
    text: 'Several turns on one starter. Each turn sends the whole history again.',
  },
  {
    id: 'cost',
    term: 'Cost',
    text: 'What the router calculates for each worker: weight × blocks to compute + blocks in use there. The lowest cost wins.',
  },
  {
    id: 'counted',
    term: 'Counted turn',
    text: 'A turn that ended in a settled step, after the last turn from before had ended. Only counted turns are compared.',
  },
  {
    id: 'decode',
    term: 'Decode',
    text: 'The second part of a request: tokens are generated one by one. It is bound by memory bandwidth and determines TPOT.',
  },
  {
    id: 'deployment',
    term: 'Deployment',
    text: 'What serves the requests: engine, model, GPU, number of workers, speculation.',
  },
  {
    id: 'dynamo',
    term: 'Dynamo',
    also: 'nvidia framework rust python',
    text: 'NVIDIA’s open-source framework for serving models on many GPUs and nodes, in Rust and Python: frontend, router, planner and transfer of caches around engines such as TensorRT-LLM, vLLM and SGLang.',
  },
  {
    id: 'dgd',
    term: 'DynamoGraphDeployment',
    also: 'dgd crd custom resource',
    text: 'One Kubernetes object that describes all services of a Dynamo cluster. Dynamo’s operator makes Deployments of it, or, with Grove, PodCliques, which make the pods of frontend and workers.',
  },
  {
    id: 'disaggregated',
    term: 'Disaggregated serving',
    text: 'Prefill and decode on separate workers. Dynamo supports it; the recorded runs did not use it.',
  },
  {
    id: 'discovery-plane',
    term: 'Discovery plane',
    also: 'kubernetes crd endpointslices etcd dynamoworkermetadata',
    text: 'How Dynamo’s components find each other. On Kubernetes through custom resources (DynamoWorkerMetadata, a CRD) and EndpointSlices, so no etcd is needed; a pod that ends is removed automatically.',
  },
  {
    id: 'draft-model',
    term: 'Draft model',
    also: 'speculative',
    text: 'A small model that guesses the next tokens, for the large one to check in one pass. It takes GPU memory of its own: where four GPUs share the model, about {pub.doc.memory-draft} each.',
  },
  {
    id: 'eagle3',
    term: 'EAGLE-3',
    also: 'speculative',
    text: 'A prediction head on the large model’s own hidden states, in place of a draft model and much smaller than one. A head is trained for one model. There is none for Llama 3.1 70B, so the demonstration changes to Llama 3.3 70B for it.',
  },
  {
    id: 'latency',
    term: 'End-to-end latency',
    also: 'e2e',
    text: 'From sending a request to the last content of its answer.',
  },
  {
    id: 'event-plane',
    term: 'Event plane',
    also: 'nats zmq',
    text: 'How workers tell the router which blocks they store and drop, over NATS or ZMQ. KV-aware routing needs it.',
  },
  {
    id: 'event-publishing',
    term: 'Event publishing',
    also: '--publish-events-and-metrics kv events',
    text: 'A worker announces the blocks it stores and drops only if this is enabled; for Dynamo’s TensorRT-LLM workers with --publish-events-and-metrics. Without it the router has to guess.',
  },
  { id: 'fp8', term: 'FP8', text: 'Eight-bit floating point: half the memory of FP16 for weights and cache.' },
  { id: 'goodput', term: 'Goodput', text: 'Requests that met every SLO, per second or as a share.' },
  {
    id: 'gpu-memory',
    term: 'GPU memory',
    also: 'vram framebuffer fb hbm dcgm',
    text: 'GPU memory in use: the weights, the KV cache, which engines reserve at startup, and temporary buffers. It is therefore high from the start. The demonstration’s model in FP8 takes {pub.doc.memory-h200} of one GPU with its EAGLE-3 head; where four GPUs share the model, its weights take {pub.doc.memory-tp4} each.',
  },
  {
    id: 'gpu-utilisation',
    term: 'GPU utilisation',
    also: 'utilization dcgm',
    text: 'The share of time in which a GPU computes anything at all, as reported by NVIDIA’s DCGM exporter. Decode waits for memory more than it computes, so even a busy server may not show a full bar.',
  },
  {
    id: 'grove',
    term: 'Grove',
    text: 'NVIDIA’s addition to Kubernetes that groups, orders and scales the pods of an inference deployment.',
  },
  { id: 'inflight', term: 'In-flight', text: 'Requests that were sent to a worker and are not finished.' },
  {
    id: 'chunk-latency',
    term: 'Inter-chunk latency',
    text: 'The gap between two streamed chunks, however many tokens a chunk has. Not the same as ITL.',
  },
  {
    id: 'interpolated',
    term: 'Interpolated',
    text: 'Calculated from the two nearest recorded levels, because this one was not recorded.',
  },
  {
    id: 'interval',
    term: 'Interval (95 %)',
    text: 'Where the true value probably lies. Turns that share a worker are correlated, so minutes are compared, not single turns. You may look as often as you like. If the interval includes zero, or there is none yet, the difference stands in grey, as “not certain”, with the time that a decision takes if it stays what it is.',
  },
  {
    id: 'interval-all-looks',
    term: 'Interval over all looks',
    also: 'confidence sequence',
    text: 'An interval that stays valid however often it is checked and whenever the trial stops. It is wider than one that is read once, at a time fixed in advance.',
  },
  {
    id: 'itl',
    term: 'ITL',
    also: 'inter-token latency',
    text: 'Inter-token latency: the gap between two tokens as the client sees it. It was not recorded; what older tables call ITL is TPOT.',
  },
  {
    id: 'kai',
    term: 'KAI Scheduler',
    also: 'gang queue',
    text: 'A Kubernetes scheduler with queues and gang scheduling: it places a group of pods on GPUs all at once or not at all. Dynamo’s operator uses it for Grove’s pods; an annotation of the DynamoGraphDeployment names the queue.',
  },
  {
    id: 'kv-aware',
    term: 'KV-aware routing',
    also: 'kv mode',
    text: 'Sends a request to the worker that has most of its prefix cached, taking load into account.',
  },
  {
    id: 'kv-cache',
    term: 'KV cache',
    also: 'key value',
    text: 'Attention keys and values of tokens already processed, kept so that they need not be computed again.',
  },
  {
    id: 'kvbm',
    term: 'KVBM',
    also: 'kv block manager',
    text: 'Dynamo’s KV block manager. It moves blocks that do not fit on the GPU to host memory, disk or remote storage.',
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
    also: 'KVIndexer',
    text: 'The part of the router that keeps the prefix tree up to date from the events.',
  },
  {
    id: 'publisher',
    term: 'KV publisher',
    also: 'KVPublisher',
    text: 'The part of the worker that sends an event for every block stored or dropped.',
  },
  {
    id: 'least-loaded',
    term: 'Least loaded',
    text: 'Sends a request to the worker with the lowest load, whatever it has cached.',
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
    text: 'How many different opening texts are in circulation. Now {live.openings}. Few: every worker soon holds them all. One per conversation: only the worker that served it does.',
  },
  {
    id: 'output-tokens',
    term: 'Output tokens',
    text: 'As counted by the server. If the server does not report them, streamed chunks are counted and the screen says so.',
  },
  { id: 'overlap', term: 'Overlap', text: 'The blocks of a request’s prefix that a worker has cached.' },
  {
    id: 'overlap-weight',
    term: 'Overlap weight',
    also: 'kv_overlap_score_weight',
    text: 'The weight of blocks to compute in the cost, relative to load. Higher: more cache hits. Lower: more even load. Dynamo’s default is one.',
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
    text: 'A stage of the demonstration: round-robin, KV-aware, KV-aware with a draft model, KV-aware with EAGLE-3. Each changes one thing.',
  },
  {
    id: 'podclique',
    term: 'PodClique',
    also: 'grove',
    text: 'Grove’s group of pods with one role, such as frontend, worker or leader, with its own replicas and resources.',
  },
  {
    id: 'podclique-scaling-group',
    term: 'PodCliqueScalingGroup',
    also: 'grove multinode leader worker',
    text: 'PodCliques that Grove scales and schedules as one, since none is of use without the others: the pods of a worker on several nodes.',
  },
  { id: 'planner', term: 'Planner', text: 'The Dynamo component that adds and removes workers as load changes.' },
  {
    id: 'predicted',
    term: 'Predicted hit rate',
    text: 'The hit rate the router expected from its index, before the engine looked up its cache.',
  },
  {
    id: 'prefill',
    term: 'Prefill',
    text: 'The first part of a request: the prompt is processed. It makes up most of TTFT; cached blocks skip it.',
  },
  {
    id: 'prefix-caching',
    term: 'Prefix caching',
    text: 'Reusing cached blocks for prompts that begin the same. Reuse ends at the first token that differs.',
  },
  { id: 'queued', term: 'Queued', text: 'Requests at the frontend that have no first token yet. Now {live.queued}.' },
  {
    id: 'radix-tree',
    term: 'Radix tree',
    also: 'prefix tree',
    text: 'A tree of prefixes. Each node lists the workers that have it cached, so one walk along a prompt finds what every worker has of it.',
  },
  {
    id: 'request-plane',
    term: 'Request plane',
    also: 'tcp http nats dyn_request_plane',
    text: 'How requests and tokens travel between Dynamo’s components: TCP by default, or HTTP/2 or NATS. It is configured independently of the event plane.',
  },
  {
    id: 'router-mode',
    term: 'DYN_ROUTER_MODE',
    also: 'routing mode environment variable round_robin round-robin kv',
    text: 'The environment variable of Dynamo’s frontend that sets how it routes: “kv”, or round-robin, spelt “round_robin” by older deployments and “round-robin” by newer ones. It is read at startup, so a change restarts the frontend.',
  },
  {
    id: 'round-robin',
    term: 'Round-robin',
    text: 'Requests go to the workers in rotation, regardless of caches and load.',
  },
  {
    id: 'temperature',
    term: 'Router temperature',
    text: 'Above zero the router picks a worker at random, with lower cost more likely. At zero, Dynamo’s default, it always picks the lowest cost.',
  },
  {
    id: 'rps',
    term: 'RPS',
    also: 'requests per second',
    text: 'Completed requests per second. One request is one turn. The card shows the last 60 s. This step: {live.rps}.',
  },
  {
    id: 'settling',
    term: 'Settling',
    text: 'The time after a change until there is a minute of counted turns. Nothing is compared before that.',
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
    text: 'Tokens are guessed cheaply and verified together. The result is the same, only faster. Now {live.speculation}.',
  },
  {
    id: 'spread',
    term: 'Spread',
    text: 'Requests in flight at the busiest worker − those at the least busy. Now {live.spread}.',
  },
  {
    id: 'starter',
    term: 'Starter',
    text: 'The long text that opens a conversation. Conversations on the same starter begin with exactly the same bytes.',
  },
  { id: 'step', term: 'Step', text: 'A period in which concurrency, mode and workload do not change.' },
  {
    id: 'sustained',
    term: 'Sustained concurrency',
    text: 'The highest tested level that meets all SLOs, as does every lower tested level. Recorded: {rec.kv.sustained} under KV-aware routing, {rec.rr.sustained} under round-robin.',
  },
  {
    id: 'sweep',
    term: 'Sweep',
    text: 'Measures each mode at each level several times, always starting from cold caches. The recorded tables are sweeps.',
  },
  {
    id: 'tensor-parallel',
    term: 'Tensor parallelism (TP)',
    text: 'One model split across several GPUs that work on each token together.',
  },
  {
    id: 'tensorrt-llm',
    term: 'TensorRT-LLM',
    also: 'trtllm trt-llm engine nvidia',
    text: 'NVIDIA’s inference engine: it runs the model, batches requests and keeps the KV cache. Dynamo also supports vLLM and SGLang.',
  },
  {
    id: 'tokens-per-step',
    term: 'Tokens per step',
    text: 'Tokens per forward pass of the large model: one without speculation, at most one more than are drafted with it. Now {live.tokens-per-step}.',
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
    text: 'Two modes alternate in blocks of spans at one concurrency until the difference in one metric, chosen in advance, is clear; after two blocks at the earliest.',
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
    text: 'The last minute. Live figures cover the turns that ended in it; next to a baseline they cover the current step, up to an hour.',
  },
];

/** All terms by the alphabet, the vendor's among them. */
export const glossary = ({ terms }: Vendor): Term[] =>
  [...own, ...terms].sort((a, b) => a.term.localeCompare(b.term, 'en'));
