import type { LaneSnapshot, PairedMetric, Showcase, Snapshot, Twin } from '../../client';
import { headline, laneSnapshot, type LaneChange } from '../../test/fixtures';
import { laneChange } from '../Diagram/fixtures';

/** A metric of 400 pairs: lane twin is 120 ms slower. */
export function paired(change: Partial<PairedMetric> = {}): PairedMetric {
  return {
    metric: 'ttft',
    n: 400,
    a: 0.2,
    b: 0.32,
    difference: 0.12,
    interval: [0.1, 0.14],
    variance_ratio: 0.5,
    ...change,
  };
}

/** Two lanes, KV-aware beside round-robin, before it is known whether their clusters differ. */
export function twin(change: Partial<Twin> = {}): Twin {
  const side = { target: 'http://127.0.0.1:8000', speculation: 'off' } as const;
  return {
    a: { ...side, lane: 'main', mode: 'kv' },
    b: { ...side, lane: 'twin', target: 'http://127.0.0.1:9000', mode: 'round_robin' },
    arranged: 'apart',
    since: '2026-11-20T09:55:00Z',
    pairs: 400,
    unpaired: 12,
    metrics: [
      paired(),
      paired({
        metric: 'kv_hit_ratio',
        a: 0.71,
        b: 0.31,
        difference: -0.4,
        interval: [-0.42, -0.38],
        variance_ratio: 1.4,
      }),
    ],
    evidence: 'none',
    caution: 'whether the two clusters are equal has not been checked: part of the difference may be theirs',
    shared_workers: [],
    headline: headline({
      text: 'KV-aware: first token 41 % sooner than round-robin',
      difference: '41 % sooner',
      against: 'twin',
      lines: [],
    }),
    ...change,
  };
}

/** A showcase in its second turn, in which lane main has begun to answer. */
export function showcase(change: Partial<Showcase> = {}): Showcase {
  return {
    id: 's1',
    state: 'running',
    topic: 'Observability',
    turn: 2,
    turns: 5,
    question: 'What does a trace show that a metric does not?',
    a: { text: 'A trace follows one request', done: false, sent: true, ttft: 0.2, worker: 'worker-1' },
    b: { text: '', done: false, sent: true },
    results: [{ turn: 1, a: 0.25, b: 0.75, first: 'main', lead: 0.5 }],
    ...change,
  };
}

/** Both lanes of a snapshot: the second under round-robin, against a target of its own. */
export function bothLanes(main: LaneChange = {}, second: LaneChange = {}): Pick<Snapshot, 'lanes'> {
  const measured = (p50: number, p95: number, rate: number, hit: number): Partial<LaneSnapshot> => {
    const { window, baseline } = laneSnapshot();
    const ttft = { p50, p95, n: 100 };
    return {
      window: { ...window, output_tokens_per_second: rate, metrics: { ...window.metrics, ttft } },
      kv: { hit_ratio: hit },
      baseline: {
        ...baseline,
        live: { ...baseline.live, ttft },
        live_output_tokens_per_second: rate,
        live_kv_hit_ratio: hit,
      },
    };
  };
  return {
    lanes: [
      { ...laneSnapshot(laneChange(3)), ...measured(0.2, 0.5, 3168, 0.71), ...change(main) },
      {
        ...laneSnapshot({ ...laneChange(3), state: { mode: 'round_robin' }, target: { url: 'http://127.0.0.1:9000' } }),
        ...measured(0.32, 0.7, 2817, 0.31),
        name: 'twin',
        ...change(second),
      },
    ],
  };
}

/** Returns a lane with the given parts, in full. */
function change(lane: LaneChange): Partial<LaneSnapshot> {
  const { state, baseline, target, ...rest } = lane;
  const full = laneSnapshot(lane);
  return {
    ...rest,
    ...(state && { state: full.state }),
    ...(baseline && { baseline: full.baseline }),
    ...(target && { target: full.target }),
  };
}
