import type { Member, MemberState } from '../../client';
import { digits, milliseconds, MS, number } from '../../lib/format';
import { memberStates } from '../../lib/members';

/** The text where a member does not report a figure. */
const NOT_KNOWN = 'not known';

/** The lag that a member's self-check measured. It has no number before the first measurements. */
export function lag({ client }: Member): string {
  return client.verdict === 'unknown' ? NOT_KNOWN : milliseconds(client.lag_seconds);
}

/** The offset of a member's clock, with its uncertainty. */
export function clock({ clock_ahead_seconds: ahead, clock_within_seconds: within }: Member): string {
  if (ahead === undefined) {
    return NOT_KNOWN;
  }
  const size = digits(Math.abs(ahead), MS);
  const sign = Number(size) === 0 ? '' : ahead > 0 ? '+' : '−';
  return `${sign}${size}${within === undefined ? '' : ` ± ${digits(within, MS)}`} ms`;
}

/** Remarks on a member, in sentences. */
export function notes({ state, reason, lost_turns: lost = 0 }: Member): string[] {
  const remark = reason && `${memberStates[state]}: ${reason}${/[.!?]$/.test(reason) ? '' : '.'}`;
  const [turn, object] = lost === 1 ? ['turn is', 'it'] : ['turns are', 'them'];
  const turns = `${number(lost)} ${turn} lost: it could not deliver ${object}.`;
  return [...(remark ? [remark] : []), ...(lost > 0 ? [turns] : [])];
}

/** All members together. */
interface Totals {
  /** The number of members, without those that are refused. */
  members: string;
  /** The number of members in each state. */
  states: string;
  conversations: string;
}

/** Sums members up. */
export function totals(members: Member[]): Totals {
  const count = (wanted: MemberState) => members.filter(({ state }) => state === wanted).length;
  const taken = members.length - count('refused');
  return {
    members: taken === 1 ? '1 member' : `${number(taken)} members`,
    states: (Object.keys(memberStates) as MemberState[])
      .filter((state) => count(state) > 0)
      .map((state) => `${number(count(state))} ${memberStates[state].toLowerCase()}`)
      .join(', '),
    conversations: number(members.reduce((sum, { conversations }) => sum + conversations, 0)),
  };
}
