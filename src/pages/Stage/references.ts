import type { LaneSnapshot, LookedUp } from '../../client';
import { lookupTags, visibleColumns } from '../../components/Comparison';
import { milliseconds, number } from '../../lib/format';
import { modeText } from '../../lib/names';
import { isDecided, verdictText } from '../../lib/outcome';
import { AMOUNT, improvementText, TIME } from './headline';
import type { Value } from './history';
import { sourceWord } from './model';

/** A recorded value beside a figure. */
export interface Reference {
  /** Its mode and origin. */
  of: string;
  /** With its unit; a dash where there is none. */
  text: string;
  /** The comparison with the live step. */
  difference?: { kind: 'better' | 'worse' | 'same'; text: string };
}

/** Returns the recorded values at the live concurrency, in each mode, with the comparison of the step. */
export function referencesOf(lane: LaneSnapshot, value: Value): Reference[] {
  const { baseline } = lane;
  return visibleColumns({ comparison: baseline, lane }).map((column) => {
    const found = value === 'ttft_p95' ? column.ttft.p95 : column.output_tokens_per_second;
    return {
      of: `${modeText(column)}, ${lookupTags[found.lookup] ?? sourceWord(baseline)}`,
      text: value === 'ttft_p95' ? milliseconds(found.value, 0) : number(found.value),
      difference: lane.state.phase === 'running' ? difference(found, value) : undefined,
    };
  });
}

/** Describes the comparison's outcome; undefined without one. */
function difference({ improvement }: LookedUp, value: Value): Reference['difference'] {
  if (!improvement) {
    return undefined;
  }
  const difference = improvementText(improvement.percent, value === 'ttft_p95' ? TIME : AMOUNT);
  if (isDecided(improvement.outcome)) {
    return { kind: improvement.outcome, text: difference };
  }
  const words = verdictText(improvement);
  return { kind: 'same', text: improvement.outcome === 'no_difference' ? `${difference}, ${words}` : words };
}
