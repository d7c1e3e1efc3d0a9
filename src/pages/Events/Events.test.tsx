import { act, screen, within } from '@testing-library/react';
import userEvent from '@testing-library/user-event';

import { Problem, type BoothEvent } from '../../client';
import { FakeClient, member } from '../../test/fixtures';
import { renderWith, texts } from '../../test/render';
import { settled } from '../../test/settled';
import Events, { EVENTS_EVERY } from '.';

const event = (id: number, change: Partial<BoothEvent> = {}): BoothEvent => ({
  id: String(id),
  time: `2026-11-20T10:00:${String(id).padStart(2, '0')}Z`,
  lane: 'main',
  kind: 'start',
  by: 'ann',
  text: '120 conversations, kv',
  ...change,
});
const some = [
  event(3, { kind: 'settings', by: 'admin', lane: undefined, text: 'settings changed' }),
  event(2, { kind: 'mode_change', text: 'kv to round_robin' }),
  event(1),
];

async function show(events: BoothEvent[] | Problem = some) {
  const client = new FakeClient();
  client.reads.mockImplementation(() =>
    events instanceof Problem ? Promise.reject(events) : Promise.resolve({ events })
  );
  const result = renderWith(client, <Events />, '/');
  await settled(client, '/events?limit=100');
  return result;
}

const rows = () =>
  within(screen.getByRole('table'))
    .getAllByRole('row')
    .slice(1)
    .map((row) => texts(row.children).slice(1));

describe('the events', () => {
  it('report that none is of a kind', async () => {
    await show();
    await userEvent.click(screen.getByRole('radio', { name: 'Stop' }));
    expect(screen.getByText('None of the newest 3 events is of the kind “Stop”.')).toBeInTheDocument();
  });

  it('offer the kind of members where there are members, or it is chosen', async () => {
    const joined = event(4, { kind: 'member', by: 'west-2', lane: undefined, text: 'west-2 has come' });
    const { client } = await show([joined, ...some]);
    expect(rows()[0]).toEqual(['Member', 'west-2', 'west-2 has come']);
    expect(screen.queryByRole('radio', { name: 'Member' })).not.toBeInTheDocument();
    act(() => client.show({}, { members: [member('west-2')] }));
    await userEvent.click(screen.getByRole('radio', { name: 'Member' }));
    expect(rows()).toEqual([['Member', 'west-2', 'west-2 has come']]);
    act(() => client.show());
    expect(screen.getByRole('radio', { name: 'Member' })).toBeChecked();
  });

  it('report that there are none, or why they cannot be read', async () => {
    const { unmount } = await show([]);
    expect(screen.getByText(/No events yet/)).toBeInTheDocument();
    unmount();
    await show(new Problem(502, 'The load generator does not respond.'));
    expect(screen.getByText('The load generator does not respond.')).toBeInTheDocument();
  });

  it('are polled, and stay with their age after a loss', async () => {
    jest.useFakeTimers({ advanceTimers: true });
    const { client } = await show();
    client.reads.mockResolvedValue({ events: [event(4, { kind: 'stop', text: 'stopped' }), ...some] });
    await act(() => jest.advanceTimersByTimeAsync(EVENTS_EVERY));
    expect(rows()[0]).toEqual(['Stop', 'ann', 'stopped']);
    client.reads.mockRejectedValue(new Problem(502, 'Gone.'));
    await act(() => jest.advanceTimersByTimeAsync(EVENTS_EVERY));
    expect(screen.getByText(/^Gone. Last refreshed at/)).toBeInTheDocument();
    expect(rows()).toHaveLength(4);
    jest.useRealTimers();
  });

  it('are extended on request', async () => {
    const { client } = await show(Array.from({ length: 100 }, (_, i) => event(i % 60, { id: String(100 - i) })));
    await userEvent.click(screen.getByRole('button', { name: 'Show up to 1,000' }));
    await settled(client, '/events?limit=1000');
  });
});
