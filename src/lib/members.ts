import type { Member, MemberState } from '../client';
import { number } from './format';

/** The name of each state of a member. */
export const memberStates: Record<MemberState, string> = {
  present: 'Present',
  late: 'Late',
  leaving: 'Leaving',
  refused: 'Refused',
};

const troubles: MemberState[] = ['late', 'refused'];

/** Returns the members to show: none where one holds all conversations, unless it is late or refused. */
export function shownMembers(members: Member[] = []): Member[] {
  return members.length > 1 || members.some(({ state }) => troubles.includes(state)) ? members : [];
}

/** Names the members that are late or refused; undefined without any. */
export function memberTroubles(members: Member[] = []): string | undefined {
  const [first, ...more] = members.filter(({ state }) => troubles.includes(state));
  if (!first) {
    return undefined;
  }
  if (more.length === 0) {
    return `Member ${first.name} is ${first.state}`;
  }
  const counts = troubles
    .map((trouble) => ({ trouble, n: members.filter(({ state }) => state === trouble).length }))
    .filter(({ n }) => n > 0);
  return `Members: ${counts.map(({ trouble, n }) => `${number(n)} ${trouble}`).join(', ')}`;
}

/** Explains why members are late or refused, a line each. */
export function memberReasons(members: Member[] = []): string {
  return members
    .filter(({ reason }) => reason)
    .map(({ name, reason }) => `${name}: ${reason}`)
    .join('\n');
}
