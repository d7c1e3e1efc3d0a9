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
        text: 'Requests per second, output tokens per second (TOPS) and KV hit rate over the last 60 s; requests and errors since the start; queued requests now. A dash means no data; errors are red above zero.',
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
        text: 'Question and answer of each turn with TTFT, ITL, tokens, latency, and the worker that served it. Follow one conversation: under KV-aware routing it stays on one worker.',
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
        name: 'Top row',
        text: 'Request rate, requests in flight, queued requests and output tokens per second, as the frontend counts them.',
      },
      {
        name: 'TTFT p95 and TPOT p95',
        text: 'The two SLO metrics over time. The red area is above the SLO. Dotted lines are recorded, dashed lines were measured here; each names its mode or phase.',
      },
      {
        name: 'Latency and KV cache',
        text: 'Mean time of a whole request, and the share of prompt tokens found in a cache. The thick line is measured at the client; the thin one is calculated from the frontend’s counters and is inaccurate while the load changes.',
      },
      {
        name: 'Per worker metrics',
        text: 'Requests in flight, GPU utilisation, time in the engine’s queue, KV cache occupancy, queue depth and GPU memory of each worker. In-flight is even under round-robin and uneven under KV-aware routing; a queue at a single worker is what raises TTFT p95.',
      },
      {
        name: 'Speculative decoding',
        text: 'Acceptance rate and tokens per step. Without speculation there is no acceptance rate, and each step produces one token.',
      },
    ],
  },
  {
    id: 'booth',
    title: 'Grafana: KV Booth',
    items: [
      {
        name: 'Everything on one screen',
        text: 'Figures, controls, comparison, turns, workers and the recorded benchmark, with each worker’s history below.',
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
