import type { Column, LaneSnapshot, ModeState, Twin } from '../../client';
import { cautionText, SIDES, standing, type SideKey } from '../../components/Twin';
import { number, span } from '../../lib/format';
import type { Known } from '../../lib/known';
import { modeName, modeText } from '../../lib/names';
import { targetTrouble } from '../../lib/target';
import { capital } from '../../lib/text';
import { clock } from '../../lib/time';
import { sourceWord } from './model';

/** The result of a comparison, as a sentence with an emphasized difference. */
export interface Headline {
  before: string;
  difference?: string;
  after?: string;
  /** The interval and its metric, or why there is none. */
  detail?: string;
  /** Why the difference may have another cause than the modes. */
  caution?: string;
  /** Same where nothing is decided. */
  kind: 'better' | 'worse' | 'same';
}

/** The sentence while there is no difference to state. */
const noDifferenceYet = (before: string, detail?: string): Headline => ({ before, detail, kind: 'same' });

/** Compares the live TTFT p95 with the one recorded under another mode, by outcome and interval of the comparison. */
export function headlineOf(known: Known | undefined): Headline {
  if (!known) {
    return noDifferenceYet('Waiting for the load generator');
  }
  const { baseline, state } = known.lane;
  const source = sourceWord(baseline);
  if (state.phase !== 'running') {
    return noDifferenceYet(idleText(known.lane));
  }
  const trouble = targetTrouble(known.lane);
  if (trouble) {
    return noDifferenceYet(trouble.title);
  }
  if (baseline.withheld) {
    return noDifferenceYet('No verdict', capital(baseline.withheld));
  }
  const column = otherMode(known.lane);
  if (column?.ttft.p95.value === undefined) {
    return noDifferenceYet(`No ${source} results of another mode at ${number(baseline.concurrency)} conversations`);
  }
  const { improvement } = column.ttft.p95;
  if (baseline.settling || !improvement || improvement.outcome === 'too_variable') {
    return noDifferenceYet(undecidedText(baseline.settling ? baseline.settling_for_seconds : undefined));
  }
  const { percent, interval, outcome, seconds_left: left } = improvement;
  if (outcome === 'withheld') {
    return noDifferenceYet('No verdict', 'The load generator’s own error is too large');
  }
  const other = `${inSentence(modeText(column))} (${source})`;
  const interval95 = interval && intervalText(interval, size, '%');
  if (outcome === 'no_difference') {
    const wait = left === undefined ? undefined : `verdict in ${about(left)}`;
    const measured = `measured: first token ${improvementText(percent, TIME)}`; // the measured difference stays visible
    return noDifference(modeText(state), other, [measured, interval95, wait]);
  }
  return {
    ...firstToken(modeText(state), improvementText(percent, TIME), other),
    detail: listed([interval95, `TTFT p95 of this step: ${number(baseline.n)} turns in ${span(baseline.seconds)}`]),
    kind: outcome,
  };
}

/** Returns the recorded column of another mode, with the live speculation where there is one. */
function otherMode({ baseline, state }: LaneSnapshot): Column | undefined {
  const others = baseline.columns.filter(({ mode }) => mode !== state.mode);
  return others.find(({ speculation }) => speculation === state.speculation) ?? others[0];
}

/** Compares the mean TTFT of two lanes, paired turn by turn, by standing and interval of the pairs. */
export function headlineOfBoth(
  known: Record<SideKey, Known>,
  twin: Twin | undefined,
  names: Record<SideKey, string>
): Headline {
  const { a } = known;
  const caution = twin && cautionText(twin);
  if (a.lane.state.phase !== 'running') {
    return noDifferenceYet(idleText(a.lane));
  }
  const trouble = targetTrouble(a.lane) ?? targetTrouble(known.b.lane);
  if (trouble) {
    return noDifferenceYet(trouble.title);
  }
  const paired = twin?.metrics.find(({ metric }) => metric === 'ttft');
  if (!twin || !paired?.difference || !paired.a || !paired.b) {
    const left = Math.max(...SIDES.map((key) => known[key].lane.baseline.settling_for_seconds));
    return { ...noDifferenceYet(undecidedText(left), pairsText(twin)), caution };
  }
  // The KV-aware side is the subject, unless neither or both sides are KV-aware.
  const [subject, other]: SideKey[] = twin.b.mode === 'kv' && twin.a.mode !== 'kv' ? ['b', 'a'] : ['a', 'b'];
  const sign = subject === 'a' ? 1 : -1; // the difference is B − A, and less is better
  const base = other === 'a' ? paired.a : paired.b;
  const difference = improvementText((sign * 100 * paired.difference) / base, TIME);
  const measured = `measured: first token ${difference}`;
  const stands = standing(paired);
  if (!paired.interval || !stands) {
    return { ...noDifferenceYet(undecidedText(undefined), listed([measured, pairsText(twin)])), caution };
  }
  const ends = paired.interval.map((end) => sign * end).sort((low, high) => low - high);
  const ms = (seconds: number) => number(1000 * Math.abs(seconds));
  const interval95 = intervalText(ends, ms, 'ms');
  const name = inSentence(names[other]);
  if (stands === 'same') {
    return { ...noDifference(names[subject], name, [measured, interval95, pairsText(twin)]), caution };
  }
  const isDoubtful = twin.evidence === 'differ' || twin.evidence === 'shared';
  return {
    ...firstToken(names[subject], difference, name),
    detail: listed([
      `${ms(paired.difference)} ms ${direction(sign * paired.difference, TIME)}`, // in the unit of its interval
      interval95,
      `mean TTFT of ${pairsText(twin)}`,
    ]),
    caution,
    kind: isDoubtful ? 'same' : stands === subject ? 'better' : 'worse',
  };
}

function pairsText(twin: Twin | undefined): string | undefined {
  if (!twin?.since) {
    return 'Turns count once both routers have settled';
  }
  const since = clock(Date.parse(twin.since), 'minute');
  return `${number(twin.pairs)} turns on both routers since ${since}`;
}

function firstToken(subject: string, difference: string, other: string) {
  return { before: `${subject}: first token`, difference, after: `than ${other}` };
}

function noDifference(subject: string, other: string, detail: Words[]): Headline {
  return noDifferenceYet(`${subject}: no significant difference from ${other}`, listed(detail));
}

/** The words for an improvement and for its opposite. */
interface Directions {
  better: string;
  worse: string;
}

/** The words for times. */
export const TIME: Directions = { better: 'sooner', worse: 'later' };

/** The words for rates. */
export const AMOUNT: Directions = { better: 'more', worse: 'less' };

/** An improvement in per cent in words: "25 % sooner". */
export function improvementText(percent: number, directions: Directions): string {
  return `${size(percent)} % ${direction(percent, directions)}`;
}

function direction(value: number, { better, worse }: Directions): string {
  return value < 0 ? worse : better;
}

/**
 * Rounds to whole numbers, which are easier to read from a distance; below ten, one decimal keeps a small value from
 * being 0.
 */
function size(percent: number): string {
  const value = Math.abs(percent);
  return number(value, value < 9.95 ? 1 : 0);
}

/** Formats an interval of an improvement: "95 % interval: 12 to 38 % sooner". */
function intervalText([low, high]: readonly number[], write: (value: number) => string, unit: string): string {
  const [near, far] = high < 0 ? [high, low] : [low, high];
  const both = low < 0 !== high < 0; // each end needs its own word
  const first = both ? `${write(near)} ${unit} ${direction(near, TIME)}` : write(near);
  return `95 % interval: ${first} to ${write(far)} ${unit} ${direction(far, TIME)}`;
}

/** Reports that there is no verdict so far, and the expected time where it is known. */
function undecidedText(seconds: number | undefined): string {
  return seconds ? `Not enough data yet (${about(seconds)})` : 'Not enough data yet';
}

/** Formats an approximate duration. */
function about(seconds: number): string {
  const minutes = Math.max(1, Math.ceil(seconds / 60));
  if (minutes > LONGEST) {
    return 'more than an hour';
  }
  return `about ${seconds < 60 ? `${Math.ceil(seconds)} s` : `${minutes} min`}`;
}

/** The longest wait that is given as a number, in minutes. */
const LONGEST = 60;

function changeText({ arm, mode }: ModeState): string {
  return arm ?? `${inSentence(modeName(mode))} routing`;
}

/** Returns why nothing is compared while a workload does not run. */
function idleText({ state }: LaneSnapshot): string {
  switch (state.phase) {
    case 'switching':
      return state.mode_change
        ? `The cluster changes to ${changeText(state.mode_change.to)}`
        : 'The cluster changes its routing';
    case 'draining':
      return 'The workload is ending';
    default:
      return 'The workload is stopped';
  }
}

/** Returns a mode's name for use within a sentence. */
function inSentence(name: string): string {
  return name.startsWith('KV') ? name : name.charAt(0).toLowerCase() + name.slice(1);
}

type Words = string | undefined;

/** Joins clauses to one line. */
function listed(clauses: Words[]): string {
  return capital(clauses.filter((clause) => clause !== undefined).join(' · '));
}
