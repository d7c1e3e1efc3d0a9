import { THIS_TARGET } from '../../components/Comparison';
import type { Comparison, Live } from '../../client';
import { DASH } from '../../lib/format';
import { limiterOf, limitName } from '../../lib/hold';
import { lastKnown } from '../../lib/known';
import { modeText } from '../../lib/names';
import { targetTrouble } from '../../lib/target';
import { capital } from '../../lib/text';
import { LANE, TWIN } from '../lane';

/** Returns the mode of the lane, or those of both lanes; a dash until it is known. */
export function titleOf(live: Live, both: boolean): string {
  const [main, twin] = [LANE, TWIN].map((lane) => {
    const known = lastKnown(live, lane);
    return known ? modeText(known.lane.state) : DASH;
  });
  if (!both) {
    return main;
  }
  return main === twin ? `${main} on both routers` : `${main} and ${twin}`;
}

/** Returns the origin of a baseline's values, in a word. */
export function sourceWord({ name }: Pick<Comparison, 'name'>): string {
  return name === THIS_TARGET ? 'measured' : 'recorded';
}

/** Returns a sentence for each problem, so that old or spoiled figures are not taken for good ones. */
export function troubles({ state, lane }: Live): string[] {
  if (!lane || state.status !== 'live') {
    return [];
  }
  const change = lane.state.mode_change;
  const trouble = targetTrouble(lane);
  return [
    trouble && `${trouble.title}. ${trouble.detail}`,
    limiterOf(lane) === 'target_rps' && `${capital(limitName('target_rps', lane.state))} holds the load down.`,
    change?.failed && `The mode was not changed: ${change.message}`,
    change?.phase === 'waiting_for_operator' && `Waiting for the operator: ${change.message}`,
  ].filter((words) => typeof words === 'string');
}

/** The last known state of the lane. */
export const knownOf = (live: Live) => lastKnown(live, LANE);
