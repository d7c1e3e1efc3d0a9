import type { LaneSnapshot, LookedUp } from '../../client';
import { lookupTags, visibleColumns } from '../../components/Comparison';
import { directed, milliseconds, number, relative } from '../../lib/format';
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
      text: value === 'ttft_p95' ? milliseconds(found.value) : number(found.value),
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
  const isTime = value === 'ttft_p95';
  const [better, worse] = isTime ? ['sooner', 'later'] : ['more', 'less'];
  const change = isTime ? -percent : percent;
  const text =
    change > 100
      ? relative(change, isTime ? 'long' : 'much')
      : directed(`${number(Math.abs(percent), 1)} %`, percent < 0 ? worse : better);
  if (isDecided(outcome)) {
    return { kind: outcome, text };
  }
  return { kind: 'same', text: outcome === 'no_difference' ? `${text}, not certain` : verdictText(improvement) };
}
