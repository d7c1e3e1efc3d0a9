import type { Improvement } from '../client';
import { digits, number, relative, signed, type Format } from './format';

/** Describes a difference: "better", or "not certain, ~4 min" with the expected time to a decision. */
export function verdictText({ outcome, seconds_left: left }: Improvement): string {
  switch (outcome) {
    case 'better':
    case 'worse':
      return outcome;
    case 'no_difference':
      return left === undefined ? 'not certain' : `not certain, ${waitText(left)}`;
    case 'too_variable':
      return 'not certain yet';
    case 'withheld':
      return 'withheld: own error';
    case 'trade_off':
      return 'neither';
  }
}

/** The longest wait that is given as a number, in minutes. */
const LONGEST = 60;

function waitText(seconds: number): string {
  const minutes = Math.max(1, Math.ceil(seconds / 60));
  return minutes > LONGEST ? '> 1 h' : `~${number(minutes)} min`;
}

/** Formats the difference of a live value from a recorded one: "−227 ms (−31.9 %)". Lower times are better. */
export function changeText(improvement: Improvement, change: number, format: Format, isLessBetter: boolean): string {
  const percent = isLessBetter ? -improvement.percent : improvement.percent;
  const unit = format.unit === '%' ? ' points' : format.unit ? ` ${format.unit}` : '';
  const size = relative(percent, isLessBetter ? 'long' : 'much');
  return `${signed(change, (value) => digits(value, format))}${unit} (${size})`;
}

/** Whether a difference is decided: neither chance nor too few turns can explain it. */
export function isDecided(outcome: Improvement['outcome'] | undefined): outcome is 'better' | 'worse' {
  return outcome === 'better' || outcome === 'worse';
}
