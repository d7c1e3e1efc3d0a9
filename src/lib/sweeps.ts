import type { SweepKind, SweepNow, SweepState, SweepSummary } from '../client';
import { number, span as duration } from './format';
import { levelText, rangesOf } from './level';
import { modeName, modeText } from './names';
import { clock } from './time';

const kinds: Record<SweepKind, string> = { trial: 'Trial', sweep: 'Sweep', capacity: 'Capacity search' };

/** Returns the name of a kind of sweep, for a heading. */
export function kindName(kind: SweepKind): string {
  return kinds[kind];
}

/** Returns the name of a kind of sweep inside a sentence: "the capacity search". */
export function kindWord(kind: SweepKind): string {
  return kinds[kind].toLowerCase();
}

const states: Record<SweepState, string> = {
  running: 'in progress',
  paused: 'paused',
  done: 'finished',
  cancelled: 'cancelled',
  failed: 'failed',
};

/** Returns the name of a sweep's state. */
export function stateWord(state: SweepState): string {
  return states[state];
}

/** Describes the question of a sweep, without its kind: "KV-aware vs. Round-robin at 120". */
export function questionText({ kind, modes = [], levels = [] }: SweepSummary['request']): string {
  const names = modes.map(modeText);
  if (kind === 'trial' && names.length === 2) {
    return `${names[1]} vs. ${names[0]} at ${levelText(levels[0])}`;
  }
  const ranges = rangesOf(levels).map(([low, high]) =>
    low === high ? `at ${levelText(low)}` : `from ${levelText(low)} to ${levelText(high)}`
  );
  return [names.join(', '), ...ranges].join(' ').trim();
}

/** Returns the label of a sweep: its title, or its kind and question. */
export function sweepName({ request }: Pick<SweepSummary, 'request'>): string {
  return request.title ? request.title : `${kindName(request.kind)}: ${questionText(request)}`;
}

/** Returns the reason of a sweep's state, to follow its name: " by ann", or ": the target failed". */
export function reasonSuffix({ reason, cause }: Pick<SweepSummary, 'reason' | 'cause'>): string {
  return reason ? (cause === 'operator' ? ` ${reason}` : `: ${reason}`) : '';
}

/** Names the sweep that has the lane, as a sentence. */
export function sweepInProgress({ request, state }: SweepSummary): string {
  return state === 'running'
    ? `A ${kindWord(request.kind)} is in progress: ${questionText(request)}`
    : `A ${kindWord(request.kind)} has ended or is paused: the previous workload is being restored`;
}

/** Explains an operator's options during a sweep. */
export function sweepHint({ request, state }: SweepSummary): string {
  return state === 'running'
    ? `Pause it on the Benchmarks page to control the workload by hand. Stop also pauses the ${kindWord(request.kind)}.`
    : 'This takes a moment.';
}

type Progress = SweepSummary['progress'];

/** Returns the seconds of all spans so far, including the one in progress. */
export function secondsUsed({ seconds_used: used, span }: Progress): number {
  return used + (span?.elapsed_seconds ?? 0);
}

/** Returns the number of spans that count: "7 spans measured, 1 spoiled". */
export function measuredText({ spans, of, spoiled }: Progress): string {
  const done = of ? `${number(spans)} of ${number(of)} spans` : `${number(spans)} ${spans === 1 ? 'span' : 'spans'}`;
  return `${done} measured${spoiled > 0 ? `, ${number(spoiled)} spoiled` : ''}`;
}

/** Returns the number of spans that count and the remaining time. now is in milliseconds since 1970. */
export function progressText({ state, progress }: Pick<SweepSummary, 'state' | 'progress'>, now: number): string {
  const left = state === 'running' && leftText(progress, now);
  return `${measuredText(progress)}${left ? `; ${left}` : ''}.`;
}

/** Returns the expected end and its range; undefined where it is not known. */
function leftText({ seconds_left: left, seconds_least: least, seconds_most: most, beyond }: Progress, now: number) {
  const at = (seconds: number) => clock(now + 1000 * seconds, 'minute');
  if (beyond && most !== undefined) {
    return `at this rate it will reach its time limit at ${at(most)} undecided`;
  }
  if (left !== undefined) {
    const range = least !== undefined && most !== undefined ? ` (between ${at(least)} and ${at(most)})` : '';
    return `about ${duration(Math.ceil(left))} left, until ${at(left)}${range}`;
  }
  const latest = most !== undefined && `it ends by ${at(most)} at the latest`;
  return [least !== undefined && `the first look is in about ${duration(Math.ceil(least))}, at ${at(least)}`, latest]
    .filter(Boolean)
    .join('; ');
}

/** Describes the state of the span in progress, which may be one of several. */
export function spanText(now: SweepNow, all?: number): string {
  const { number: k, attempt, lane, mode, concurrency } = now;
  const again = attempt > 1 ? `, attempt ${attempt}` : '';
  const on = lane ? `, lane ${lane}` : '';
  const place = all === undefined || k >= all ? number(k + 1) : `${number(k + 1)} of ${number(all)}`;
  return `Span ${place}${again}${on}: ${modeText(mode)} at ${levelText(concurrency)}, ${phaseText(now)}`;
}

function phaseText({ phase, message, seconds, of, turns, warming_up: waiting, concurrency, mode }: SweepNow): string {
  const time = of === undefined ? `for ${number(seconds)} s` : `${number(seconds)} of at least ${number(of)} s`;
  const total = typeof concurrency === 'number' ? ` of ${number(concurrency)}` : ''; // at a rate, any number
  switch (phase) {
    case 'switching':
      return message
        ? `switching: ${message}`
        : `preparing ${mode.arm ?? `${modeName(mode.mode)} routing`} with cold caches`;
    case 'warming_up':
      return waiting > 0
        ? `warming up: ${number(waiting)}${total} initial conversations still in progress`
        : `warming up: ${time}${message ? `, ${message}` : ''}`;
    case 'counting':
      return `counting: ${time}, ${number(turns)} ${turns === 1 ? 'turn' : 'turns'}`;
    case 'storing':
      return 'waiting until its turns are stored';
  }
}
