import type { Comparison, Live, LaneSnapshot, LiveState, State, SweepSummary } from '../client';
import { number } from './format';
import { describeHold, limiterOf, limitName } from './hold';
import { isBelow, kindOf, levelText, levelWords, progressText, valueOf } from './level';
import { servingName } from './names';
import { kindWord } from './sweeps';
import { targetTrouble } from './target';

/** The severity of a state. */
type Tone = 'good' | 'busy' | 'quiet' | 'bad';

/** The state of a workload, in words. */
interface StatusWords {
  tone: Tone;
  /** One or two words that change only with the state. */
  label: string;
  /** Details, which may change every second. */
  detail?: string;
}

/** Describes the live state of a lane. */
export function describeLive({ state, lane }: Live, name: string): StatusWords {
  switch (state.status) {
    case 'loading':
      return { tone: 'quiet', label: 'Waiting', detail: 'for the load generator' };
    case 'lost':
      return { tone: 'bad', label: 'Load generator lost' };
    case 'live':
      return lane ? describeLane(lane) : { tone: 'bad', label: 'No such lane', detail: noSuchLane(state, name) };
  }
}

function noSuchLane(state: LiveState & { status: 'live' }, name: string): string {
  return `There is no lane “${name}”. Lanes: ${state.snapshot.lanes.map((l) => l.name).join(', ')}.`;
}

/** Describes the state of a lane. */
export function describeLane(lane: LaneSnapshot): StatusWords {
  const { state } = lane;
  switch (state.phase) {
    case 'stopped':
      return state.sweep ? betweenSpans(state.sweep) : { tone: 'quiet', label: 'Stopped' };
    case 'draining':
      return { tone: 'busy', label: 'Draining', detail: `${levelWords(state.concurrency.actual)} left` };
    case 'switching':
      return {
        tone: 'busy',
        label: 'Switching',
        detail: state.mode_change && `to ${servingName(state.mode_change.to)}`,
      };
    case 'running':
      return describeRunning(lane);
  }
}

/** A sweep stops the workload before each span, and once more when it restores it. */
function betweenSpans({ state, request }: SweepSummary): StatusWords {
  return state === 'running'
    ? { tone: 'busy', label: 'Between spans', detail: `of a ${kindWord(request.kind)}` }
    : { tone: 'busy', label: 'Restoring', detail: 'the previous workload' };
}

function describeRunning(lane: LaneSnapshot): StatusWords {
  const { state, baseline } = lane;
  const { actual, target } = state.concurrency;
  const rate = kindOf(target) === 'rate' ? rateText(state) : undefined;
  const held = describeHold(lane) ?? rate;
  if (lane.window.error_ratio === 1) {
    return { tone: 'bad', label: 'Failing', detail: targetTrouble(lane)?.title };
  }
  if (state.step.settled === undefined) {
    if (isBelow(actual, target)) {
      return { tone: 'busy', label: 'Starting', detail: progressText(actual, target) + rampProgress(lane) };
    }
    const detail =
      rate ??
      (isBelow(target, actual)
        ? `${levelWords(actual)}, decreasing to ${levelText(target)}`
        : 'conversations started with the previous settings are still running');
    return { tone: 'busy', label: 'Settling', detail };
  }
  if (state.settling) {
    const left = settlingText(baseline);
    return { tone: 'busy', label: 'Settling', detail: held ? `${held}, ${left}` : left };
  }
  return { tone: 'good', label: 'Running', detail: held };
}

/** Describes how long a step still takes to settle, or that no turn counts so far. */
function settlingText({ settling_for_seconds: left }: Comparison): string {
  return left > 0 ? `${number(Math.ceil(left))} s to go` : 'waiting for the first turns';
}

/** Returns the least remaining time, or the limit that slows it. */
function rampProgress(lane: LaneSnapshot): string {
  const { actual, target } = lane.state.concurrency;
  switch (limiterOf(lane)) {
    case 'start_rate':
      return `, at least ${Math.ceil((valueOf(target) - actual) / lane.state.start_rate)} s to go`;
    case 'target_rps':
      return `, slowed by ${limitName('target_rps', lane.state)}`;
    default:
      return '';
  }
}

function rateText({ concurrency: { target, actual } }: State): string {
  return `${levelWords(target)} · ${number(actual)} in progress`;
}
