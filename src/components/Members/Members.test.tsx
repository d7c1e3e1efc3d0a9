import { act, screen, within } from '@testing-library/react';

import type { Member } from '../../client';
import { violations } from '../../test/axe';
import { FakeClient, member } from '../../test/fixtures';
import { renderWith, texts } from '../../test/render';
import { Members } from '.';
import { clock, lag, notes } from './model';

const two = [member('east-1'), member('west-2', { conversations: 1500 })];

function show(members: Member[] | undefined = two) {
  const client = new FakeClient();
  client.show({}, { members });
  return renderWith(client, <Members lane="main" />);
}

const rows = () =>
  within(screen.getByRole('table'))
    .getAllByRole('row')
    .slice(1)
    .map((row) => texts(row.children));

describe('the members', () => {
  it('have a row each, and one together', () => {
    show();
    expect(screen.getByRole('region', { name: 'Members' })).toBeInTheDocument();
    expect(texts(screen.getAllByRole('columnheader')).join()).toBe(
      'Member,State,Conversations,Lag p95 of 10 s,Clock offset,CPU of all cores'
    );
    expect(rows()).toEqual([
      ['east-1', 'Present', '500', '1.2 ms', '+3.2 ± 0.4 ms', '21 %'],
      ['west-2', 'Present', '1,500', '1.2 ms', '+3.2 ± 0.4 ms', '21 %'],
      ['2 members', '2 present', '2,000'],
    ]);
  });

  it('report why one is late, or why one is refused', async () => {
    const { client, container } = show([
      member('east-1'),
      member('west-2', { state: 'late', reason: 'the load generator itself is 8 ms late' }),
    ]);
    expect(rows().slice(1)).toEqual([
      ['west-2', 'Late', '500', '1.2 ms', '+3.2 ± 0.4 ms', '21 %'],
      ['Late: the load generator itself is 8 ms late.'],
      ['2 members', '1 present, 1 late', '1,000'],
    ]);
    const reason = 'it is version 0.8.0, and the coordinator is 0.9.0: start the same version';
    act(() => client.show({}, { members: [member('old', { state: 'refused', reason, conversations: 0 })] }));
    expect(rows().slice(1)).toEqual([[`Refused: ${reason}.`], ['0 members', '1 refused', '0']]);
    expect(await violations(container)).toEqual([]);
  });

  it('show no old number once the load generator is unreachable', () => {
    const { client } = show();
    act(() => client.lose());
    expect(screen.queryByRole('table')).not.toBeInTheDocument();
    expect(screen.getByText('No member data: the load generator is unreachable.')).toBeInTheDocument();
  });

  it('are absent where none was known before the loss', () => {
    const { client, container } = show([member('east-1')]);
    act(() => client.lose());
    expect(container).toBeEmptyDOMElement();
  });
});

describe('a member', () => {
  const { client } = member('x');

  it.each([
    [0.0032, 0.0004, '+3.2 ± 0.4 ms'],
    [-0.12, 0.002, '−120 ± 2.0 ms'],
    [12.5, 0.0004, '+12,500 ± 0.4 ms'],
    [-0.00001, 0.0004, '0.0 ± 0.4 ms'],
    [0.0032, undefined, '+3.2 ms'],
    [undefined, undefined, 'not known'],
  ])('has a clock %p s ahead within %p s: %s', (ahead, within, words) => {
    expect(clock(member('x', { clock_ahead_seconds: ahead, clock_within_seconds: within }))).toBe(words);
  });

  it('has no lag before its self-check reports it', () => {
    expect(lag(member('x', { client: { ...client, verdict: 'unknown', lag_seconds: 0 } }))).toBe('not known');
  });

  it('reports the number of lost turns', () => {
    expect(notes(member('x', { lost_turns: 1 }))).toEqual(['1 turn is lost: it could not deliver it.']);
    expect(notes(member('x', { state: 'late', reason: 'It is late.', lost_turns: 1200 }))).toEqual([
      'Late: It is late.',
      '1,200 turns are lost: it could not deliver them.',
    ]);
  });
});
