import type { SweepRequest, TrialDifference, TrialState } from '../../client';
import { number } from '../../lib/format';
import { modeText } from '../../lib/names';
import { differenceText, intervalText, isShare, metricName } from './metrics';

/** The two modes of a trial, A and B, in words; a mode compared with itself has its letter. */
export function armsOf({ modes = [] }: SweepRequest): [a: string, b: string] {
  const [a, b] = [0, 1].map((i) => (modes[i] ? modeText(modes[i]) : 'AB'[i]));
  return a === b ? [`A (${a})`, `B (${b})`] : [a, b];
}

/** How a trial stands, in a sentence, with the difference and its interval. */
export function trialText(trial: TrialState, request: SweepRequest): string {
  const { verdict, primary, pairs } = trial;
  const [a, b] = armsOf(request);
  const metric = metricName(request.primary ?? primary?.metric ?? '');
  const evidence = primary && `${metric} under ${b} is ${compared(primary)} (95 % interval ${intervalText(primary)}).`;
  const after = `after ${number(pairs)} ${pairs === 1 ? 'pair' : 'pairs'} of spans`;
  const heads: Record<TrialState['verdict'], string> = {
    running: pairs === 0 ? `Not decided yet: no pair of spans is complete.` : `Not decided yet, ${after}.`,
    b_better: `${b} is better than ${a}, ${after}.`,
    a_better: `${a} is better than ${b}, ${after}.`,
    no_difference: `No difference of interest between ${a} and ${b}: ${smallest(request)} or more is excluded, ${after}.`,
    time_over: `Undecided when its time was over, ${after}.`,
  };
  return evidence ? `${heads[verdict]} ${evidence}` : heads[verdict];
}

/** A difference as a person says it: "12.3 % lower". */
function compared({ metric, difference }: TrialDifference): string {
  const size = number(Math.abs(100 * difference), 1);
  const unit = isShare(metric) ? 'points' : '%';
  return size === '0.0'
    ? 'the same to 0.1 %'.replace('%', unit)
    : `${size} ${unit} ${difference < 0 ? 'lower' : 'higher'}`;
}

function smallest({ smallest: value, primary }: SweepRequest): string {
  return `${number(100 * (value ?? 0), 1)} ${primary && isShare(primary) ? 'points' : '%'}`;
}

/** What the interval of a difference says. */
export function outcomeText({ outcome }: TrialDifference, request: SweepRequest): string {
  const [a, b] = armsOf(request);
  const texts: Record<TrialDifference['outcome'], string> = {
    running: 'nothing yet',
    b_better: `${b} is better`,
    a_better: `${a} is better`,
    no_difference: 'no difference of interest',
  };
  return texts[outcome];
}

/** A difference with its interval: "−12.3 % (−15.0 to −9.6 %)". */
export function differenceWithInterval(one: TrialDifference): string {
  return `${differenceText(one.metric, one.difference)} (${intervalText(one)})`;
}
