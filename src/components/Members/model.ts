import type { Member, MemberState } from '../../client';
import { milliseconds, number } from '../../lib/format';
import { memberStates } from '../../lib/members';

/** The text where a member does not report a figure. */
const NOT_KNOWN = 'not known';

/** The lag that a member's self-check measured. It has no number before the first measurements. */
export function lag({ client }: Member): string {
  return client.verdict === 'unknown' ? NOT_KNOWN : milliseconds(client.lag_seconds);
}

/** The time for a message to a member and its answer. */
export function roundTrip({ round_trip_seconds: seconds }: Member): string {
  return seconds === 0 ? NOT_KNOWN : milliseconds(seconds);
}

/** Remarks on a member, in sentences. */
export function notes({ state, reason, lost_turns: lost = 0 }: Member): string[] {
  const remark = reason && `${memberStates[state]}: ${reason}${/[.!?]$/.test(reason) ? '' : '.'}`;
  const [turn, count] = lost === 1 ? ['turn was', 'counts'] : ['turns were', 'count'];
  const turns = `${number(lost)} ${turn} lost with it, and ${count} as cancelled.`;
  return [...(remark ? [remark] : []), ...(lost > 0 ? [turns] : [])];
}

/** Sums members up, without those that are refused, and names the number in each state. */
export function totals(members: Member[]) {
  const count = (wanted: MemberState) => members.filter(({ state }) => state === wanted).length;
  const taken = members.length - count('refused');
  return {
    members: taken === 1 ? '1 member' : `${number(taken)} members`,
    states: (Object.keys(memberStates) as MemberState[])
      .filter((state) => count(state) > 0)
      .map((state) => `${number(count(state))} ${memberStates[state].toLowerCase()}`)
      .join(', '),
    turns: number(members.reduce((sum, { turns }) => sum + turns, 0)),
  };
}
