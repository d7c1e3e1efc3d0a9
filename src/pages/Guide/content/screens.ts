import type { Vendor } from '../../../vendor';

/** What the detailed dashboard is called in Grafana. */
export const DETAILED = 'KV-cache-aware routing';

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
export const screens = ({ dashboard }: Pick<Vendor, 'dashboard'>): Screen[] => [
  {
    id: 'dashboard',
    title: 'Dashboard',
    page: '',
    items: [
      {
        name: 'Header',
        text: 'Title, whether the workload runs, how old the numbers are, and Start and Stop. It also says when the cluster is simulated.',
      },
      {
        name: 'Workload controls',
        text: 'The slider sets how many conversations go on at once. The mode says how requests are routed; a change empties the caches, so the first minute is not compared.',
      },
      {
        name: 'Live against baseline',
        text: 'Live p50 and p95 of TTFT, TPOT, ITL and latency of this step, five minutes of it at most, beside what was recorded or measured at the same concurrency. Green meets the target ({slo.ttft} for TTFT p95, {slo.tpot} for TPOT p95), yellow is close to it, red misses it. “No difference shown” means that chance could explain it.',
      },
      {
        name: 'Figures in a row',
        text: 'Requests per second, output tokens per second (TOPS) and KV hit rate over the last 60 s; requests and errors since the start; queued requests now. A dash means that there is no figure now; errors turn red above zero.',
      },
      {
        name: 'TTFT by turn',
        text: 'How long the first token took in the first, second, third turn, over the last 60 s. With caches in the right place the bars get shorter to the right.',
      },
      {
        name: 'Recorded benchmark',
        text: 'Latencies, rates and hit rate as recorded at each level in both modes, with the gain between them, and the same as curves. It does not move: it is the yardstick. A minus sign means that KV-aware routing was worse there.',
      },
      {
        name: 'Workers',
        text: 'One card a worker: requests in flight and waiting, how full its KV cache is, and its GPU’s utilisation and memory.',
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
        text: 'TTFT, output tokens per second and KV hit rate of each router over the last 60 s, and the requests in flight at each worker. “Clusters may differ” stands there until the modes were swapped or both ran the same one.',
      },
      {
        name: 'Showcase',
        text: 'One conversation, sent to both routers turn by turn: both answers as they grow, which one began first, and by how much. It counts in no figure.',
      },
      {
        name: 'The last ten minutes',
        text: 'TTFT p95 and output tokens per second of both routers, each in one graph. The colour is that of the mode; the line of the second lane is dashed.',
      },
      {
        name: 'Turn by turn',
        text: 'The same turn of the same conversation on both sides: the mean difference with its interval. “No difference shown” means that chance could explain it.',
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
        text: 'Every conversation with its topic, turns and duration. Active ones grow while you look; a failed turn ends its conversation as an error.',
      },
      {
        name: 'Transcript',
        text: 'Question and answer of each turn with TTFT, ITL, tokens, latency, and the worker that served it. Follow one conversation: under KV-aware routing it stays with one worker.',
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
        text: 'The way of a request from the load generator to a worker, with live numbers on each part. Choose a part and it explains itself.',
      },
      {
        name: 'Planes',
        text: 'How parts find each other, how requests travel, and how workers report their caches.',
      },
      { name: 'Platform', text: 'What the cluster stands on, and which of it is really there now.' },
    ],
  },
  {
    id: 'kv-routing',
    title: 'KV routing',
    page: 'kv-routing',
    items: [
      {
        name: 'The last decisions',
        text: 'Each request with the cost of every worker: blocks still to compute plus blocks in use. The cheapest worker gets the request.',
      },
      {
        name: 'Prefix tree and loop',
        text: 'What the router knows of the caches, and how it learns it.',
      },
      { name: 'Both modes side by side', text: 'Round-robin and KV-aware routing in words.' },
    ],
  },
  {
    id: 'dynamo-features',
    title: 'Dynamo features',
    page: 'dynamo-features',
    items: [
      { name: 'Cards', text: 'What Dynamo offers, and whether it is in use here or not known.' },
      {
        name: 'Phases',
        text: 'The four phases with what was measured here at the concurrency in force.',
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
        text: 'A question to the simulated cluster: more GPUs, other users, Dynamo’s own switches. What differs from the preset is marked and can be taken back.',
      },
      {
        name: 'Curves',
        text: 'Latency, throughput, hit rate and queue against concurrency in both modes, all simulated: the mean of several runs, with a band from the least to the largest. Dashed lines are recorded, rings were measured on this target.',
      },
      {
        name: 'Why the modes cross',
        text: 'What each mode did to queues and caches, in figures and in sentences made from them.',
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
        text: 'A trial says whether one mode is better than another at one concurrency, a sweep what each mode does at each level, a capacity search how much each sustains within the SLOs. All run on the cluster itself, each span on cold caches.',
      },
      {
        name: 'Under way',
        text: 'How far it is, the time left as estimated, and the figures so far with their intervals. It can be paused, resumed and cancelled; the workload is then as it was before.',
      },
      {
        name: 'Result',
        text: 'What it shows in sentences, differences and figures with their intervals, spans that do not count and why, and the report. One click makes it a baseline.',
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
        name: 'Large figures',
        text: 'Concurrency, mode, TTFT p95 and output tokens per second, each with the baseline’s and the difference. The key S opens this screen, Escape leaves it.',
      },
      {
        name: 'Curves and bars',
        text: 'The last ten minutes with every mode change marked, and the requests in flight at each worker.',
      },
    ],
  },
  {
    id: 'gtc-demo',
    title: `Grafana: ${DETAILED}${dashboard ? ` (“${dashboard}”)` : ''}`,
    items: [
      {
        name: 'Top row',
        text: 'Request rate, requests in flight, queued requests and output tokens per second, as the frontend counts them.',
      },
      {
        name: 'TTFT p95 and TPOT p95',
        text: 'The two promises over time. The red area lies above the target. Dotted lines are recorded, dashed lines were measured here; each names its mode or phase.',
      },
      {
        name: 'Latency and KV cache',
        text: 'Mean time of a whole request, and the share of prompt tokens found in a cache. The thick line is what clients were told; the thin one divides the frontend’s counters and is off while the load changes.',
      },
      {
        name: 'Per worker metrics',
        text: 'Requests in flight, GPU utilisation, time in the engine’s queue, KV cache occupancy, queue depth and GPU memory of each worker. In-flight is even under round-robin and leans under KV-aware routing; a queue at one worker alone is what lifts TTFT p95.',
      },
      {
        name: 'Speculative decoding',
        text: 'Acceptance rate and tokens per step. Without speculation there is no acceptance rate, and a step yields one token.',
      },
    ],
  },
  {
    id: 'booth',
    title: 'Grafana: KV Booth',
    items: [
      {
        name: 'The whole booth',
        text: 'Figures, controls, comparison, turns, workers and the recorded benchmark on one screen, and below them each worker’s history.',
      },
    ],
  },
  {
    id: 'routers',
    title: 'Grafana: Routers',
    items: [
      {
        name: 'Other routers',
        text: 'What other ways to choose workers would have found in the caches on this very traffic, beside what was measured. It tells hits and balance, not latency, and says how far it can be relied on.',
      },
      {
        name: 'Curves by lane',
        text: 'TTFT p95, output tokens per second, hit rate and spread of each lane over time. With a second lane, both are compared turn by turn above them.',
      },
    ],
  },
];
