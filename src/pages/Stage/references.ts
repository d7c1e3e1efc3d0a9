import type { LaneSnapshot, LookedUp } from '../../client';
import { lookupTags, visibleColumns } from '../../components/Comparison';
import { milliseconds, number } from '../../lib/format';
import { modeText } from '../../lib/names';
import { isDecided, verdictText } from '../../lib/outcome';
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

/** Describes the comparison's outcome; undefined without one. An expected time to a decision is not part of it. */
function difference({ improvement }: LookedUp, value: Value): Reference['difference'] {
  if (!improvement) {
    return undefined;
  }
  const { percent, outcome } = improvement;
  const [better, worse] = value === 'ttft_p95' ? ['sooner', 'later'] : ['more', 'less'];
  const size = Math.abs(percent);
  // Below ten, one decimal keeps a small value from being 0.
  const text =
    percent < -100
      ? `${number(1 + size / 100, 1)} times as long`
      : `${number(size, size < 9.95 ? 1 : 0)} % ${percent < 0 ? worse : better}`;
  if (isDecided(outcome)) {
    return { kind: outcome, text };
  }
  return { kind: 'same', text: outcome === 'no_difference' ? `${text}, not certain` : verdictText(improvement) };
}
