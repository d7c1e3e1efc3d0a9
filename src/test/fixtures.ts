import type {
  BaselineRow,
  Client,
  ClientError,
  ClientHealth,
  Column,
  Comparison,
  Headline,
  Improvement,
  LaneSnapshot,
  LiveState,
  Me,
  Member,
  Settings,
  Snapshot,
  State,
  SweepSummary,
} from '../client';
import { BehaviorSubject } from 'rxjs';

/** The default settings of the load generator. */
export function settings(change: Partial<Settings> = {}): Settings {
  return {
    slo: { ttft: 0.6, tpot: 0.06 },
    slider: { min: 60, max: 180, increment: 10 },
    max_concurrency: 1000,
    default_baseline: '',
    title: 'Serve more users on the same GPUs',
    subtitle: '',
    vendor: 'neutral',
    ...change,
  };
}

/** A settled workload of 120 conversations under KV-aware routing. */
export function state(change: Partial<State> = {}): State {
  return {
    running: true,
    phase: 'running',
    concurrency: { target: 120, actual: 120 },
    step: { id: 3, started: '2026-11-20T09:50:00Z', settled: '2026-11-20T09:50:20Z', counted: 480 },
    settling: false,
    mode: 'kv',
    speculation: 'off',
    driver: 'simulated',
    modes: [
      { mode: 'round_robin', speculation: 'off' },
      { mode: 'kv', speculation: 'off' },
      { mode: 'kv', speculation: 'eagle3' },
    ],
    started: '2026-11-20T09:40:00Z',
    shape: { turns: { min: 3, max: 5 }, max_tokens: 1024, openings: 10, followup: 'built-in questioner' },
    questioner: 'built_in',
    start_rate: 10,
    target_rps: 25,
    arrivals: 'poisson',
    burstiness: 1,
    max_inflight: 1000,
    traffic_shape: {},
    ...change,
  };
}

/** A trial that controls the workload. */
export function sweepSummary(change: Partial<SweepSummary> = {}): SweepSummary {
  return {
    id: 't1',
    lane: 'main',
    state: 'running',
    by: 'editor',
    asked: '2026-11-20T09:40:00Z',
    request: {
      kind: 'trial',
      modes: [
        { mode: 'round_robin', speculation: 'off' },
        { mode: 'kv', speculation: 'off' },
      ],
      levels: [120],
    },
    progress: { spans: 2, spoiled: 0, seconds_used: 300 },
    words: [],
    ...change,
  };
}

/** Returns an improvement in per cent that is decided or lies within chance. */
export function improved(percent: number, isDecided = true): Improvement {
  const half = isDecided ? Math.abs(percent) / 2 : Math.abs(percent) + 1;
  const outcome = !isDecided ? 'no_difference' : percent > 0 ? 'better' : 'worse';
  return { percent, outcome, interval: [percent - half, percent + half] };
}

/** Returns a recorded TTFT p95 at this level, without the median. */
export function ttftP95(value: number, improvement?: Improvement): Column['ttft'] {
  return { p50: { lookup: 'not_recorded' }, p95: { value, lookup: 'exact', improvement } };
}

/** Returns a recorded column with every value at this level. */
export function column(change: Partial<Column> = {}): Column {
  const exact = (value: number, percent?: number, isDecided = true) => ({
    value,
    lookup: 'exact' as const,
    improvement: percent === undefined ? undefined : improved(percent, isDecided),
  });
  const notRecorded = { lookup: 'not_recorded' as const };
  return {
    mode: 'round_robin',
    speculation: 'not_recorded',
    ttft: { p50: exact(0.3747, 31.9), p95: exact(0.7251, 25) },
    tpot: { p50: exact(0.0264, 1, false), p95: exact(0.0551, -8.2) },
    itl: { p50: notRecorded, p95: notRecorded },
    latency: { p50: exact(22.1, 5), p95: exact(31.4, 4) },
    output_tokens_per_second: exact(2817, 12.5),
    requests_per_second: exact(4.21, 10),
    kv_hit_ratio: exact(0.123, 450),
    ...change,
  };
}

/** The sentence of a settled step: certain as measured here, not yet as recorded. */
export function headline(change: Partial<Headline> = {}): Headline {
  return {
    text: 'KV-aware: first token 22 % sooner than round-robin, measured here at 09:40',
    difference: '22 % sooner',
    kind: 'better',
    certain: true,
    against: 'measured',
    since: '2026-11-20T09:52:00Z',
    detail: ['certain since 09:52', 'mean TTFT 255 ms beside 327 ms', '95 % interval: 15 to 29 % sooner'],
    lines: [
      { against: 'measured', text: 'Measured here: 22 % sooner', kind: 'better', metric: 'ttft_mean' },
      { against: 'recorded', text: 'Recorded: 25 % sooner so far', kind: 'uncertain', metric: 'ttft_p95' },
      { against: 'recorded', text: 'Recorded: 9 % sooner so far', kind: 'uncertain', metric: 'ttft_p50' },
    ],
    ...change,
  };
}

/** A settled comparison with the recorded results. */
export function comparison(change: Partial<Comparison> = {}): Comparison {
  const n = 480;
  return {
    name: 'h200x3-tp1-llama70b-fp8',
    title: '3 × H200',
    concurrency: 120,
    settling: false,
    settling_for_seconds: 0,
    seconds: 150,
    n,
    live: {
      ttft: { p50: 0.2551, p95: 0.5438, n, p50_interval: [0.24, 0.27], p95_interval: [0.5, 0.58] },
      tpot: { p50: 0.0261, p95: 0.0612, n, p50_interval: [0.025, 0.027], p95_interval: [0.058, 0.063] },
      itl: { p50: 0.0259, p95: 0.0498, n: 300000, estimated: true },
      latency: { p50: 21, p95: 30.2, n, p50_interval: [20.1, 21.8], p95_interval: [29, 31] },
    },
    live_output_tokens_per_second: 3168.4,
    live_output_tokens_per_second_interval: [3071, 3266],
    live_requests_per_second: 4.63,
    live_kv_hit_ratio: 0.713,
    differences: [],
    columns: [column(), column({ mode: 'kv' })],
    headline: headline(),
    ...change,
  };
}

/** Returns a row of a baseline without figures. */
export function emptyRow(
  concurrency: BaselineRow['concurrency'],
  mode: BaselineRow['mode'],
  change: Partial<BaselineRow> = {}
): BaselineRow {
  const none = { ttft: {}, tpot: {}, tpot_derived: {}, itl: {}, latency: {} };
  return { concurrency, mode, speculation: 'not_recorded', ...none, ...change };
}

/** The parts of a lane that a test changes. */
export interface LaneChange extends Partial<Omit<LaneSnapshot, 'state' | 'baseline' | 'target'>> {
  state?: Partial<State>;
  baseline?: Partial<Comparison>;
  target?: Partial<LaneSnapshot['target']>;
}

/** Returns the lane's part of a snapshot. It is a simulated cluster where its driver is that. */
export function laneSnapshot({ state: s, baseline, target, ...change }: LaneChange = {}): LaneSnapshot {
  const none = { n: 0 };
  const shown = state(s);
  const kind = shown.driver === 'simulated' ? 'simulated' : 'unknown';
  return {
    name: 'main',
    target: {
      kind,
      url: 'http://127.0.0.1:8000',
      model: 'llama',
      deployment: {},
      reachable: true,
      probes: 1,
      ...target,
    },
    state: shown,
    window: {
      seconds: 60,
      metrics: { ttft: none, tpot: none, itl: none, latency: none },
      requests_per_second: 4.6,
      output_tokens_per_second: 3168,
      error_ratio: 0.0125,
      timeouts: 0,
      errors: {},
      awaiting: { n: 3, oldest_seconds: 0.4 },
    },
    totals: {
      ok: 1,
      errors: 0,
      cancelled: 0,
      errors_by_class: {},
      input_tokens: 1,
      cached_tokens: 1,
      output_tokens: 1,
      conversations: 1,
      lost_turns: 0,
    },
    ttft_by_turn: [],
    kv: {},
    cluster: { available: true, kv: {}, speculation: {}, workers: [], age_seconds: 1 },
    baseline: comparison(baseline),
    ...change,
  };
}

/** Returns the message that the load generator sends once a second. */
export function snapshot(lane: LaneChange = {}, change: Partial<Snapshot> = {}): Snapshot {
  return {
    time: '2026-11-20T10:00:00Z',
    lanes: [laneSnapshot(lane)],
    settings: settings(),
    client: { verdict: 'ok', reason: '', cpu_ratio: 0.1, lag_seconds: 0.001 },
    ...change,
  };
}

/** Returns a live connection with its lane main, as a component receives them. */
export function live(shown: Snapshot = snapshot()) {
  return { state: { status: 'live' as const, snapshot: shown, receivedAt: 0 }, lane: shown.lanes[0] };
}

/** Returns the load generator's health with an error of ITL at this level. */
export function clientError(level: ClientHealth['verdict'], change: Partial<ClientError & ClientHealth> = {}) {
  const { reason = '', ...of } = change;
  const metric = { lane: 'main', metric: 'itl', level, p50_seconds: 0.02, error_seconds: 0.013 } as const;
  const client: ClientHealth = {
    verdict: level,
    reason,
    cpu_ratio: 1,
    lag_seconds: 0.013,
    metrics: [{ ...metric, of: 'p50', of_seconds: 0.02, ...of }],
  };
  return client;
}

/** Returns a member on time with a fifth of a machine. */
export function member(name: string, change: Partial<Member> = {}): Member {
  return {
    id: `lease-${name}`,
    name,
    version: '0.9.0',
    started: '2026-11-20T09:40:00Z',
    state: 'present',
    turns: 500,
    client: { verdict: 'ok', reason: '', cpu_ratio: 0.21, lag_seconds: 0.0012 },
    round_trip_seconds: 0.0008,
    ...change,
  };
}

/** A user with all permissions. */
export const admin: Me = { login: 'admin', role: 'Admin', canOperate: true, canConfigure: true, configured: true };
/** A user who may only view. */
export const viewer: Me = {
  login: 'visitor',
  role: 'Viewer',
  canOperate: false,
  canConfigure: false,
  configured: true,
};

/** A client whose live state the test sets, and whose calls it records. */
export class FakeClient implements Client {
  /** The mock of live. */
  readonly states = new BehaviorSubject<LiveState>({ status: 'loading' });
  /** The mock of get. */
  readonly reads = jest.fn<Promise<unknown>, [string]>(() => Promise.reject(new Error('unexpected read')));
  /** The mock of write. */
  readonly writes = jest.fn<Promise<unknown>, [string, string, unknown]>(() => Promise.resolve({}));
  /** The mock of upload. */
  readonly uploads = jest.fn<Promise<unknown>, [string, string, string]>(() => Promise.resolve({}));
  /** The mock of me. */
  readonly who = jest.fn<Promise<Me>, []>(() => Promise.resolve(admin));

  live = () => this.states.asObservable();
  get = <T>(path: string) => this.reads(path) as Promise<T>;
  write = <T>(method: string, path: string, body: unknown) => this.writes(method, path, body) as Promise<T>;
  upload = <T>(path: string, text: string, contentType: string) => this.uploads(path, text, contentType) as Promise<T>;
  address = (path: string) => `/api/v1${path}`;
  me = () => this.who();

  /** Delivers a snapshot. */
  show(lane: LaneChange = {}, change: Partial<Snapshot> = {}) {
    this.states.next({ status: 'live', snapshot: snapshot(lane, change), receivedAt: Date.now() });
  }

  /** Reports that the load generator is unreachable. */
  lose(problem = 'connection refused') {
    const now = this.states.value;
    const last = now.status === 'live' ? now.snapshot : undefined;
    this.states.next({ status: 'lost', since: Date.now(), problem, last });
  }
}
