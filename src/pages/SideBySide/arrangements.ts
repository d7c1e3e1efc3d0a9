import type { TwinArrangement } from '../../client';
import type { Question } from '../../lib/losses';

/** The names of the arrangements. */
export const names: Record<TwinArrangement, string> = {
  apart: 'As configured',
  swapped: 'Swapped',
  same: 'Same on both',
};

/** What each arrangement means. */
export const notes: Record<TwinArrangement, string> = {
  apart: 'Each lane runs the mode it was configured with.',
  swapped: 'Each lane runs the other’s mode: differences between the clusters now work in the opposite direction.',
  same: 'Both lanes run the first one’s mode: any difference now is between the clusters.',
};

/** Confirms that modes are switched on both lanes. */
export function arrangeQuestion(arranged: TwinArrangement): Question {
  return {
    title: `Change to “${names[arranged]}”?`,
    body:
      `${notes[arranged]} Both workloads stop, the modes change, and both start again at the ` +
      'same concurrency with cold caches. The figures settle again, which takes a minute or ' +
      'more, and the pair count restarts.',
    confirm: 'Change',
  };
}
