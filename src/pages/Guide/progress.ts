import type { LaneSnapshot, Mode, Settings, Snapshot } from '../../client';
import { sloLevel } from '../../lib/slo';
import { besideHit, besideTokens, besideTTFT, type Compared } from './beside';
import { TWIN } from '../lane';
import { observeLanes } from './lanes';
import { isSame, settledKey, type Beside, type Progress, type Settled } from './seen';

/** The age at which a settled step's figures are read again, in milliseconds. */
const REFRESH = 10_000;

/** Updates the progress from a snapshot. The result is the same object where nothing is new. */
export function observe(before: Progress, { time, lanes, settings }: Snapshot, name: string): Progress {
  const [lane, twin] = [name, TWIN].map((wanted) => lanes.find((one) => one.name === wanted));
  if (!lane) {
    return before;
  }
  const since = before.since ?? (lane.state.running ? lane.state.started : undefined) ?? time;
  const changes = {
    ...countErrors({ ...before, since }, lane),
    ...(lane.state.phase === 'running' && observed(before, lane, settings, time)),
    ...(twin && observeLanes(before, [lane, twin], time)),
  };
  const next = { ...before, since, ...changes };
  return isSame(before, next) ? before : next;
}

/** Turns that ended before the beginning do not count. Totals restart with each start of the workload. */
function countErrors({ errors, since, answered }: Progress, { state, totals }: LaneSnapshot): Partial<Progress> {
  const run = state.started;
  if (run === undefined) {
    return {};
  }
  const isOld = errors.run === undefined && since !== undefined && Date.parse(run) < Date.parse(since);
  const first = { run, total: errors.total, inRun: isOld ? totals.errors : 0, okBefore: isOld ? totals.ok : 0 };
  const known = errors.run === run ? errors : first;
  const more = Math.max(0, totals.errors - known.inRun);
  return {
    errors: more > 0 ? { ...known, inRun: totals.errors, total: known.total + more } : known,
    answered: answered || totals.ok > known.okBefore,
  };
}

function observed(before: Progress, lane: LaneSnapshot, settings: Settings, at: string): Partial<Progress> {
  const { state } = lane;
  const concurrency = state.concurrency.target;
  const isSettled =
    state.step.settled !== undefined && state.step.held === undefined && !state.settling && lane.baseline.n > 0;
  return {
    started: before.started ?? { at: state.started ?? at, concurrency, mode: state.mode },
    mode: state.mode,
    own: before.own ?? (hasOwnDocuments(lane) ? { at, concurrency } : undefined),
    ...raisedConcurrency(before, concurrency, at),
    ...change(before, before.mode ?? state.mode, state.mode, at),
    ...(isSettled && settledSeen(before, lane, settings, at)),
  };
}

/** Whether the concurrency is above the lowest so far. A late report may describe a time before the last known one. */
export function raisedConcurrency({ lowest, raised }: Progress, concurrency: number, at: string): Partial<Progress> {
  const isEarlier = lowest !== undefined && Date.parse(at) < Date.parse(lowest.at);
  if (lowest === undefined || concurrency < lowest.concurrency || (concurrency === lowest.concurrency && isEarlier)) {
    return { lowest: { at, concurrency } };
  }
  return raised || isEarlier || concurrency === lowest.concurrency
    ? {}
    : { raised: { at, from: lowest.concurrency, to: concurrency } };
}

/**
 * The first change to KV-aware routing is kept; until then, the last change. A mode that becomes known is no change.
 */
export function change({ changed }: Progress, from: Mode, to: Mode, at: string): Partial<Progress> {
  return from === to || from === 'unknown' || to === 'unknown' || changed?.to === 'kv'
    ? {}
    : { changed: { at, from, to } };
}

function settledSeen(before: Progress, lane: LaneSnapshot, settings: Settings, at: string): Partial<Progress> {
  const { state } = lane;
  const concurrency = state.concurrency.target;
  const key = settledKey(state, concurrency);
  const old = before.settled[key];
  const isFresh = old !== undefined && Date.parse(at) - Date.parse(old.at) < REFRESH;
  return {
    ...(!isFresh && { settled: { ...before.settled, [key]: settledFigures(lane, old, at) } }),
    slo: before.slo ?? sloSeen(lane, settings, at),
    ...(state.mode === 'kv' && {
      improved: before.improved ?? better(besideTTFT(before, lane, at)),
      hit: before.hit ?? higher(besideHit(before, lane, at)),
      tokens: before.tokens ?? larger(besideTokens(lane, at)),
      turns: before.turns ?? turnsSeen(lane, at),
    }),
    ...(state.mode === 'round_robin' && { blind: before.blind ?? ownOpeningsSeen(lane, at) }),
  };
}

function settledFigures({ baseline, cluster, state }: LaneSnapshot, old: Settled | undefined, at: string): Settled {
  const { spread, speculation } = cluster;
  const { sum, n } = old?.spread ?? { sum: 0, n: 0 };
  return {
    at,
    concurrency: state.concurrency.target,
    ttft: baseline.live.ttft.p95,
    interval: baseline.live.ttft.p95_interval,
    hit: baseline.live_kv_hit_ratio,
    itl: baseline.live.itl.p50,
    tokens: baseline.live_output_tokens_per_second,
    acceptance: speculation.acceptance,
    tokensPerStep: speculation.tokens_per_step,
    spread: spread === undefined ? old?.spread : { sum: sum + spread, n: n + 1 },
  };
}

function sloSeen({ baseline, state }: LaneSnapshot, { slo }: Settings, at: string): Progress['slo'] {
  const { ttft, tpot } = baseline.live;
  const meets = (value: number | undefined, threshold: number) => (sloLevel(value, threshold) ?? 'missed') !== 'missed';
  return ttft.p95 !== undefined && tpot.p95 !== undefined && meets(ttft.p95, slo.ttft) && meets(tpot.p95, slo.tpot)
    ? { at, concurrency: state.concurrency.target, ttft: ttft.p95, tpot: tpot.p95 }
    : undefined;
}

/** Medians by turn have no interval: a difference below a tenth may be chance. */
export const CLEARLY = 0.9;

function turnsSeen(lane: LaneSnapshot, at: string): Progress['turns'] {
  const { first, later } = medians(lane);
  return first !== undefined && later !== undefined && later <= CLEARLY * first ? { at, first, later } : undefined;
}

/** Whether each conversation has an opening text of its own. */
export function hasOwnDocuments({ state }: LaneSnapshot): boolean {
  return state.shape.openings === 0;
}

/** The second turn is used. The third may reach one of two workers that cache a part of its conversation. */
function ownOpeningsSeen(lane: LaneSnapshot, at: string): Progress['blind'] {
  const { first, second } = medians(lane);
  return hasOwnDocuments(lane) && first !== undefined && second !== undefined && second > CLEARLY * first
    ? { at, first, later: second }
    : undefined;
}

/** Returns the median TTFT of first, second and third turns, in seconds. */
export function medians({ ttft_by_turn }: LaneSnapshot): { first?: number; second?: number; later?: number } {
  const median = (turn: string) => ttft_by_turn.find((one) => one.turn === turn && one.n > 0)?.p50;
  return { first: median('1'), second: median('2'), later: median('3') };
}

function better(found: Compared | undefined): Beside | undefined {
  return found?.shown && found.live < found.other ? strip(found) : undefined;
}

function larger(found: Compared | undefined): Beside | undefined {
  return found?.shown && found.live > found.other ? strip(found) : undefined;
}

function strip({ at, concurrency, live, other, word }: Compared): Beside {
  return { at, concurrency, live, other, word };
}

function higher(found: Beside | undefined): Beside | undefined {
  return found && found.live > found.other ? found : undefined;
}
