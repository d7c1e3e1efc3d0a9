import type { Member, MemberState } from '../../client';
import { digits, milliseconds, MS, number, percent } from '../../lib/format';
import { memberStates } from '../../lib/members';

/** What is shown where a member does not report a figure. */
const NOT_KNOWN = 'not known';

/** How late a member's self-check found it; there is no number before it has looked for a while. */
export function lag({ client }: Member): string {
  return client.verdict === 'unknown' ? NOT_KNOWN : milliseconds(client.lag_seconds);
}

/** How far a member's clock is ahead, with how wrong that may be. */
export function clock({ clock_ahead_seconds: ahead, clock_within_seconds: within }: Member): string {
  if (ahead === undefined) {
    return NOT_KNOWN;
  }
  const size = digits(Math.abs(ahead), MS);
  const sign = Number(size) === 0 ? '' : ahead > 0 ? '+' : '−';
  return `${sign}${size}${within === undefined ? '' : ` ± ${digits(within, MS)}`} ms`;
}

/** A figure that members have. */
interface Column {
  name: string;
  /** Of what it is. */
  note?: string;
  value(member: Member): string;
}

/** What of a member stands in which column. */
export const columns: Column[] = [
  { name: 'Conversations', value: ({ conversations }) => number(conversations) },
  { name: 'Lag', note: 'p95 of 10 s', value: lag },
  { name: 'Clock offset', value: clock },
  { name: 'CPU', note: 'of all cores', value: ({ client }) => percent(client.cpu_ratio, 0) },
];

/** What there is to say of a member beyond its figures, in sentences. */
export function notes({ state, reason, lost_turns: lost = 0 }: Member): string[] {
  const remark = reason && `${memberStates[state]}: ${reason}${/[.!?]$/.test(reason) ? '' : '.'}`;
  const [turn, object] = lost === 1 ? ['turn is', 'it'] : ['turns are', 'them'];
  const turns = `${number(lost)} ${turn} lost: it could not deliver ${object}.`;
  return [...(remark ? [remark] : []), ...(lost > 0 ? [turns] : [])];
}

/** All members together. */
interface Totals {
  /** How many there are, without those that are refused. */
  members: string;
  /** How many there are in each state. */
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
