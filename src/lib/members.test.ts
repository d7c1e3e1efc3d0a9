/** @jest-environment node */
import { member } from '../test/fixtures';
import { memberReasons, memberTroubles, shownMembers } from './members';

const [one, two] = [member('one'), member('two')];
const late = member('west', { state: 'late', reason: 'it is 8 ms late' });
const refused = member('old', { state: 'refused', reason: 'it is version 0.8.0' });

describe('the members that are shown', () => {
  it.each([
    ['none where one holds the conversations itself', undefined, 0],
    ['not one alone', [one], 0],
    ['not one alone that ends what it has', [member('one', { state: 'leaving' })], 0],
    ['several', [one, two], 2],
    ['one that is late', [late], 1],
    ['one that is refused', [refused], 1],
  ])('are %s', (_, members, shown) => {
    expect(shownMembers(members)).toHaveLength(shown);
  });
});

describe('what is wrong with members', () => {
  it.each([
    ['nothing', undefined, undefined],
    ['nothing of those in time', [one, two], undefined],
    ['the name of one', [one, late], 'Member west is late'],
    ['how many', [late, one, { ...late, id: 'x' }], 'Members: 2 late'],
    ['each trouble', [refused, late, { ...late, id: 'x' }], 'Members: 2 late, 1 refused'],
  ])('says %s', (_, members, words) => {
    expect(memberTroubles(members)).toBe(words);
  });

  it('has its reasons by name', () => {
    expect(memberReasons([one, late, refused])).toBe('west: it is 8 ms late\nold: it is version 0.8.0');
  });
});
