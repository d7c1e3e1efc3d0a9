import type { Improvement } from '../client';
import { improvement } from './format';

/** How a live value stands to a baseline's, in words: "+12.5 % better", "no difference shown". */
export function outcomeText(percent: number, outcome: Improvement['outcome']): string {
  switch (outcome) {
    case 'better':
    case 'worse':
      return `${improvement(percent).text} ${outcome}`;
    case 'no_difference':
      return 'no difference shown';
    case 'too_variable':
      return 'too variable to say';
    case 'withheld':
      return 'withheld: own error';
  }
}

/** Whether a difference is called one way or the other: neither chance nor too few turns can explain it away. */
export function isDecided(outcome: Improvement['outcome'] | undefined): outcome is 'better' | 'worse' {
  return outcome === 'better' || outcome === 'worse';
}
