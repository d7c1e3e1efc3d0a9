import type { Improvement } from '../client';
import { digits, number, type Format } from './format';

/** What is known of a difference: "better", or "not certain, ~4 min" where that is how long it will take. */
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
  }
}

/** The longest wait that is worth a number, in minutes. */
const LONGEST = 60;

function waitText(seconds: number): string {
  const minutes = Math.max(1, Math.ceil(seconds / 60));
  return minutes > LONGEST ? '> 1 h' : `~${number(minutes)} min`;
}

/** By how much a live value differs from a recorded one: "−227 ms (−31.9 %)". Less is better of times. */
export function changeText(improvement: Improvement, change: number, format: Format, isLessBetter: boolean): string {
  const percent = isLessBetter ? -improvement.percent : improvement.percent;
  const unit = format.unit === '%' ? ' points' : format.unit ? ` ${format.unit}` : '';
  return `${signed(change, (value) => digits(value, format))}${unit} (${signed(percent, (value) => number(value, 1))} %)`;
}

/** Writes a number with its sign, of what rounds to 0 without. */
function signed(value: number, write: (size: number) => string): string {
  const text = write(Math.abs(value));
  return /[1-9]/.test(text) ? `${value < 0 ? '−' : '+'}${text}` : text;
}

/** Whether a difference is called one way or the other: neither chance nor too few turns can explain it away. */
export function isDecided(outcome: Improvement['outcome'] | undefined): outcome is 'better' | 'worse' {
  return outcome === 'better' || outcome === 'worse';
}
