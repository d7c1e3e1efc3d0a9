/** What the detailed dashboard is called in Grafana. */
export const DETAILED = 'GTC Demo: Optimized LLM Inference';

/** One thing on a screen: what it is called there, what it shows, how to read it. */
export interface OnScreen {
  name: string;
  text: string;
}

/** A screen of the booth. */
export interface Screen {
  id: string;
  title: string;
  /** The address of the app's page; absent where it is a dashboard of Grafana. */
  page?: string;
  /** Whether it is there only where a second lane runs the same conversations. */
  twin?: boolean;
  items: OnScreen[];
}

/** What a presenter may be asked to point at. */
export const screens: Screen[] = [
  {
    id: 'dashboard',
    title: 'Dashboard',
    page: '',
    items: [
      {
        name: 'Header',
        text: 'Title, whether the workload is running, how old the numbers are, and Start and Stop. It also says if the cluster is simulated.',
      },
      {
        name: 'Workload controls',
        text: 'The slider sets how many conversations run at once. The mode sets how requests are routed; a change clears the caches, so the first minute is not compared.',
      },
      {
        name: 'Live',
        text: 'TTFT, output tokens per second and hit rate of the last minutes as curves, and TTFT by turn. A pointer or the arrow keys read the values of a moment; a drag zooms in.',
      },
      {
        name: 'Live against baseline',
        text: 'Live p50 and p95 of TTFT, TPOT, ITL and latency of this step (at most the last hour) next to what was recorded or measured at the same concurrency. Green meets the SLO ({slo.ttft} for TTFT p95, {slo.tpot} for TPOT p95), yellow is close to it, red misses it. A difference stands in grey, as “not certain”, while chance could explain it.',
      },
      {
        name: 'Key figures',
        text: 'Requests per second, output tokens per second (TOPS) and KV hit rate over the last 60 s; requests and errors since the start; queued requests now. A dash means no data; errors are red above zero. Recorded: {rec.kv.rps}, {rec.kv.tokens} and {rec.kv.hit} under KV-aware routing; {rec.rr.rps}, {rec.rr.tokens} and {rec.rr.hit} under round-robin.',
      },
      {
        name: 'TTFT by turn',
        text: 'Time to first token in the first, second, third turn and so on, over the last 60 s, with input and output tokens and latency. When requests go where their cache is, TTFT falls after the first turn although the input grows.',
      },
      {
        name: 'Recorded benchmark',
        text: 'Latencies, rates and hit rate as recorded at each level in both modes, with the gain between them, as a table and as curves. It does not change: it is the reference. A minus sign means that KV-aware routing was worse there.',
      },
      {
        name: 'Workers',
        text: 'One card per worker: requests in flight and waiting, KV cache occupancy, GPU utilisation and GPU memory.',
      },
    ],
  },
  {
    id: 'side-by-side',
    title: 'Side by side',
    page: 'side-by-side',
    twin: true,
    items: [
      {
        name: 'Both routers now',
        text: 'TTFT, output tokens per second and KV hit rate of each router over the last 60 s, and the requests in flight at each worker. “Clusters may differ” is shown until the modes have been swapped or both routers have run the same mode.',
      },
      {
        name: 'Showcase',
        text: 'One conversation, sent to both routers turn by turn: both answers as they stream, which one began first, and by how much. It is not included in any figure.',
      },
      {
        name: 'Last ten minutes',
        text: 'TTFT p95 and output tokens per second of both routers, each in one graph. The colour shows the mode; the second lane’s line is dashed.',
      },
      {
        name: 'Turn by turn',
        text: 'The same turn of the same conversation on both sides: the mean difference with its interval. A difference stands in grey, as “not certain”, while chance could explain it.',
      },
    ],
  },
  {
    id: 'conversations',
    title: 'Conversations',
    page: 'conversations',
    items: [
      {
        name: 'List',
        text: 'Every conversation with its topic, turns and duration. Active ones update live; a failed turn ends its conversation with an error.',
      },
      {
        name: 'Transcript',
        text: 'Question and answer of each turn with TTFT, ITL, tokens, latency, and the worker that served it. Follow one conversation: under KV-aware routing it stays on one worker, and later turns begin sooner. Median TTFT now: {live.turn-1} in the first turn, {live.turn-3} in the third.',
      },
    ],
  },
  {
    id: 'architecture',
    title: 'Architecture',
    page: 'architecture',
    items: [
      {
        name: 'Request path',
        text: 'The path of a request from the load generator to a worker, with live numbers on each part. Select a part for details.',
      },
      {
        name: 'Planes',
        text: 'How components find each other, how requests travel, and how workers report their caches.',
      },
      { name: 'Platform', text: 'What the cluster runs on, and which parts are seen right now.' },
    ],
  },
  {
    id: 'kv-routing',
    title: 'KV routing',
    page: 'kv-routing',
    items: [
      {
        name: 'Latest decisions',
        text: 'Each request with the cost of every worker: blocks still to compute plus blocks in use. The cheapest worker gets the request.',
      },
      {
        name: 'Prefix tree and loop',
        text: 'What the router knows about the caches, and how it learns it.',
      },
      { name: 'Both modes side by side', text: 'Round-robin and KV-aware routing, described side by side.' },
    ],
  },
  {
    id: 'dynamo-features',
    title: 'Dynamo features',
    page: 'dynamo-features',
    items: [
      { name: 'Cards', text: 'Dynamo’s features, each marked as in use here, not in use here or unknown.' },
      {
        name: 'Phases',
        text: 'The four phases with what was measured here at the current concurrency, and a report that sets the two kinds of speculation side by side.',
      },
    ],
  },
  {
    id: 'what-if',
    title: 'What if',
    page: 'what-if',
    items: [
      {
        name: 'Presets and settings',
        text: 'What to simulate: more GPUs, different users, Dynamo’s own options. Changes from the preset are marked and can be reset.',
      },
      {
        name: 'Curves',
        text: 'Latency, throughput, hit rate and queue against concurrency in both modes, all simulated: the mean of several runs, with a band from the lowest to the highest. Dashed lines are recorded, rings were measured on this target.',
      },
      {
        name: 'Why the modes cross',
        text: 'How each mode affected queues and caches, in figures and in words.',
      },
    ],
  },
  {
    id: 'benchmarks',
    title: 'Benchmarks',
    page: 'benchmarks',
    items: [
      {
        name: 'Start',
        text: 'A trial tests whether one mode is better than another at one concurrency. A sweep measures each mode at each level. A capacity search finds how many conversations each mode sustains within the SLOs. All run on the real target, and each span starts with cold caches.',
      },
      {
        name: 'In progress',
        text: 'Progress, estimated time left, and the figures so far with their intervals. It can be paused, resumed and cancelled; afterwards the workload is restored.',
      },
      {
        name: 'Result',
        text: 'The findings in words, differences and figures with their intervals, excluded spans and why, and the report. One click makes it a baseline.',
      },
      {
        name: 'Compare two results',
        text: 'Any two results side by side as a report: recorded, imported or measured.',
      },
    ],
  },
  {
    id: 'events',
    title: 'Events',
    page: 'events',
    items: [
      {
        name: 'List',
        text: 'Starts, stops, steps, mode changes and settings, newest first: what, when, and by whom.',
      },
    ],
  },
  {
    id: 'stage',
    title: 'Stage view',
    page: 'stage',
    items: [
      {
        name: 'The sentence',
        text: 'How much sooner or later the first token (TTFT p95) comes than under the other mode, with its interval: of this step against the baseline, or of both routers turn by turn. It is grey while nothing is decided, and then says how long that takes.',
      },
      {
        name: 'Large figures',
        text: 'Concurrency, mode, TTFT p95 and output tokens per second over the last minute, each with its baseline. S opens this screen, Escape closes it.',
      },
      {
        name: 'Curves and bars',
        text: 'The last ten minutes with every mode change marked, TTFT by turn, and the requests in flight at each worker.',
      },
    ],
  },
  {
    id: 'gtc-demo',
    title: `Grafana: ${DETAILED}`,
    items: [
      {
        name: 'Request Rate, Output Tokens/s',
        text: 'Completed requests and output tokens per second over one minute, as the frontend counts them. Recorded: {rec.kv.rps} and {rec.kv.tokens} under KV-aware routing, {rec.rr.rps} and {rec.rr.tokens} under round-robin. While a recording is replayed, panels from Prometheus stay empty.',
      },
      {
        name: 'Inflight, Queued',
        text: 'Requests that are being served, and those without a first token yet. A queue that stays means the cluster cannot keep up. It is the one before the workers; each engine has its own, further below.',
      },
      {
        name: 'TTFT p95',
        text: 'The SLO metric over time; the red area is above the SLO of {slo.ttft}. Requests in flight are on the right axis. Dotted lines are recorded, dashed ones were measured here; each names its mode or phase. Recorded: {rec.kv.ttft} under KV-aware routing, {rec.rr.ttft} under round-robin.',
      },
      {
        name: 'TPOT p95',
        text: 'The same for TPOT and its SLO of {slo.tpot}. It depends on batch size more than on routing. Recorded: {rec.kv.tpot} under KV-aware routing, {rec.rr.tpot} under round-robin.',
      },
      {
        name: 'TTFT (p50 and p95)',
        text: 'A wide gap between the lines is a slow tail: some requests find nothing in the cache or wait behind a full batch. Recorded medians: {rec.kv.ttft-median} under KV-aware routing, {rec.rr.ttft-median} under round-robin.',
      },
      {
        name: 'TPOT (p50 and p95)',
        text: 'A narrow gap means even decoding. It widens where large batches, or the prefill of others, share a worker. Recorded medians: {rec.kv.tpot-median} under KV-aware routing, {rec.rr.tpot-median} under round-robin.',
      },
      {
        name: 'Latency, Latency at the Client (p50 and p95)',
        text: 'The time of a whole request, queue, prefill and every token, so it follows the length of the answers. The first panel is the mean at the frontend. Recorded medians: {rec.latency}; p95 {rec.kv.latency-p95} under KV-aware routing, {rec.rr.latency-p95} under round-robin.',
      },
      {
        name: 'KV Cache',
        text: 'Share of prompt tokens found in a cache. Recorded: {rec.kv.hit} under KV-aware routing, {rec.rr.hit} under round-robin. Near zero means no reuse: first turns only, or evicted blocks. The thick line is measured at the client. The thin one, from the frontend’s counters, can exceed the whole while load falls, since a request’s input counts at its start and its cached part at its end.',
      },
      {
        name: 'Inflight Requests (per worker), In-Flight Range over Workers, In-Flight Spread and Skew',
        text: 'How requests are spread over workers: evenly under round-robin, unevenly for a while under KV-aware routing, since conversations go where their cache is. That is healthy until one worker reaches its batch limit. At {rec.spread-level} conversations the recorded spread was {rec.kv.spread} requests, under round-robin {rec.rr.spread}.',
      },
      {
        name: 'Engine Queue Wait Time (per worker), Engine Queue Depth (per worker)',
        text: 'The second queue: these requests have a worker and wait for a place in its batch. Below {pub.doc.queue-wait} they start at once. A queue at a single worker is what raises TTFT p95 while the others have room.',
      },
      {
        name: 'GPU Utilization (per GPU)',
        text: 'The share of time in which a GPU computes anything: {pub.doc.gpu-busy} while it serves, since decode waits for memory. Below {pub.doc.gpu-idle} it is nearly idle; above {pub.doc.gpu-full} for long, it may be the limit. The recorded tables do not have it.',
      },
      {
        name: 'KV Cache Occupancy (per worker), GPU Memory (per GPU)',
        text: 'A full cache evicts blocks to make room, which lowers the hit rate. GPU memory is high from the start, because engines reserve their cache when they start.',
      },
      {
        name: 'ITL (p50 and p95)',
        text: 'The gap between two tokens at the client, one value per token. The recorded tables do not have it: what they call ITL is TPOT.',
      },
      {
        name: 'Active Conversations, Error Rate by Class',
        text: 'Conversations in progress, the concurrency set, and requests in flight; and the share of turns that failed, by reason. Errors are zero while all is well.',
      },
      {
        name: 'Speculative Decoding',
        text: 'Acceptance rate and tokens per step. Without speculation there is no acceptance rate, and each step produces one token. Expected: {pub.doc.accepted-draft} of a draft model’s tokens are accepted, {pub.doc.accepted-eagle3} of those of EAGLE-3.',
      },
      {
        name: 'TTFT p50 by Turn, Latency by Turn, Input Tokens by Turn, Output Tokens by Turn',
        text: 'The first turn, the second and so on. The input grows with every turn; where requests go to the worker that has the conversation cached, TTFT falls after the first turn all the same.',
      },
    ],
  },
  {
    id: 'booth',
    title: 'Grafana: KV Booth',
    items: [
      {
        name: 'Everything on one screen',
        text: 'Figures, controls, comparison, turns, workers and the recorded benchmark, with each worker’s history below. A replay of a recording plays the upper part; the panels from Prometheus stay empty.',
      },
    ],
  },
  {
    id: 'routers',
    title: 'Grafana: Routers',
    items: [
      {
        name: 'Other routers',
        text: 'What other routing policies would have found in the caches on this same traffic, next to what was measured. It shows hit rates and balance, not latency, and says how reliable the figures are.',
      },
      {
        name: 'Curves by lane',
        text: 'TTFT p95, output tokens per second, hit rate and spread of each lane over time. With a second lane, both are compared turn by turn above the curves.',
      },
    ],
  },
];
