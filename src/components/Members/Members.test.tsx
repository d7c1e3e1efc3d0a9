import { act, screen, within } from '@testing-library/react';

import type { Member } from '../../client';
import { violations } from '../../test/axe';
import { FakeClient, member } from '../../test/fixtures';
import { renderWith, texts } from '../../test/render';
import { Members } from '.';
import { lag, notes, roundTrip } from './model';

const two = [member('east-1'), member('west-2', { turns: 1500 })];

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
      'Member,State,Turns in flight,Lag p95 of 10 s,Round trip,CPU of all cores'
    );
    expect(rows()).toEqual([
      ['east-1', 'Present', '500', '1.2 ms', '0.8 ms', '21.0 %'],
      ['west-2', 'Present', '1,500', '1.2 ms', '0.8 ms', '21.0 %'],
      ['2 members', '2 present', '2,000'],
    ]);
  });

  it('report why one is late, or why one is refused', async () => {
    const { client, container } = show([
      member('east-1'),
      member('west-2', { state: 'late', reason: 'the load generator itself is 8 ms late' }),
    ]);
    expect(rows().slice(1)).toEqual([
      ['west-2', 'Late', '500', '1.2 ms', '0.8 ms', '21.0 %'],
      ['Late: the load generator itself is 8 ms late.'],
      ['2 members', '1 present, 1 late', '1,000'],
    ]);
    const reason = 'it is version 0.8.0, and the coordinator is 0.9.0: start the same version';
    act(() => client.show({}, { members: [member('old', { state: 'refused', reason, turns: 0 })] }));
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

  it('has no lag and no round trip before they are measured', () => {
    expect(roundTrip(member('x', { round_trip_seconds: 0 }))).toBe('not known');
    expect(lag(member('x', { client: { ...client, verdict: 'unknown', lag_seconds: 0 } }))).toBe('not known');
  });

  it('reports the number of lost turns', () => {
    expect(notes(member('x', { lost_turns: 1 }))).toEqual(['1 turn was lost with it, and counts as cancelled.']);
    expect(notes(member('x', { state: 'late', reason: 'It is late.', lost_turns: 1200 }))).toEqual([
      'Late: It is late.',
      '1,200 turns were lost with it, and count as cancelled.',
    ]);
  });
});
