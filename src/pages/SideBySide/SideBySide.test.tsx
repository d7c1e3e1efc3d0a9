import { act, screen, within } from '@testing-library/react';
import userEvent from '@testing-library/user-event';

import { Problem, type HistoryPoint, type Me, type Twin } from '../../client';
import { bothLanes, showcase, twin } from '../../components/Twin/fixtures';
import { violations } from '../../test/axe';
import { admin, FakeClient, viewer } from '../../test/fixtures';
import { renderWith } from '../../test/render';
import { answered, settled } from '../../test/settled';
import { changesOfBoth, linesOfBoth } from './curves';
import { leader, progress, tally } from './showcase';
import SideBySide from '.';

jest.mock('../../lib/useNow', () => ({ useNow: () => Date.now(), useAge: () => 0 }));

const point = (second: number, change: Partial<HistoryPoint> = {}): HistoryPoint => ({
  time: new Date(Date.parse('2026-11-20T09:58:00Z') + 1000 * second).toISOString(),
  running: true,
  concurrency: 120,
  mode: 'kv',
  speculation: 'off',
  ttft_p95: 0.5,
  ...change,
});

function answer(client: FakeClient, value: Twin | Problem) {
  client.reads.mockImplementation(async (path) => {
    if (path.startsWith('/history')) {
      return { points: [point(0), point(1)] };
    }
    if (value instanceof Problem) {
      throw value;
    }
    return value;
  });
  client.writes.mockResolvedValue(value);
}

async function show(value: Twin | Problem = twin(), who: Me = admin) {
  const client = new FakeClient();
  client.who.mockResolvedValue(who);
  answer(client, value);
  client.show({}, bothLanes());
  const result = renderWith(client, <SideBySide />);
  await settled(client, '/twin', '/history?lane=main', '/history?lane=twin');
  return result;
}

const region = (name: string) => within(screen.getByRole('region', { name }));
const figure = (name: string) => screen.getByTestId(name).textContent?.trim();

describe('with one lane', () => {
  it('explains how to get a second router, and requests nothing', async () => {
    const client = new FakeClient();
    client.show();
    client.reads.mockResolvedValue({ points: [] });
    const { container } = renderWith(client, <SideBySide />);
    await answered();
    expect(screen.getByText('twin.target.url')).toBeInTheDocument();
    expect(screen.getByText('booth demo --twin')).toBeInTheDocument();
    expect(client.reads.mock.calls.map(([path]) => path)).not.toContain('/twin');
    expect(await violations(container)).toEqual([]);
    act(() => client.lose());
    expect(screen.getByText(/the load generator is unreachable/)).toBeInTheDocument();
  });
});

describe('two routers', () => {
  it('are left and right, with four figures each and the caution once', async () => {
    const { container } = await show();
    expect(region('Lane main').getByRole('heading', { name: 'KV-aware' })).toBeInTheDocument();
    expect(region('Lane twin').getByRole('heading', { name: 'Round-robin' })).toBeInTheDocument();
    expect(figure('main TTFT p50')).toBe('200 ms');
    expect(figure('twin TTFT p95')).toMatch(/^700 ms ✕misses the SLO/);
    expect(figure('main Output tokens/s')).toBe('3,168');
    expect(figure('twin KV hit rate')).toBe('31.0 %');
    expect(screen.getAllByText(/^Whether the two clusters are equal has not been checked/)).toHaveLength(1);
    expect(region('Workers of twin').getAllByRole('listitem')).toHaveLength(3);
    expect(await violations(container)).toEqual([]);
  });

  it('have one graph for each value, of both lanes', async () => {
    await show();
    expect(screen.getByRole('img', { name: /^TTFT p95 of both lanes.*, at most 700 ms/ })).toBeInTheDocument();
    expect(screen.getByRole('img', { name: /^Output tokens\/s of both lanes/ })).toBeInTheDocument();
  });

  it('are compared turn by turn in words', async () => {
    await show();
    const table = within(
      screen.getByRole('table', { name: /^400 pairs of turns that succeeded on both; 12 unpaired/ })
    );
    expect(table.getByRole('row', { name: /^TTFT/ })).toHaveTextContent(
      /200 ms.*320 ms.*Round-robin is 120 ms slower\..*\+100 ms to \+140 ms/
    );
    expect(table.getByRole('row', { name: /^KV hit rate/ })).toHaveTextContent(/Round-robin is 40\.0 points lower\./);
  });

  it('have no caution where none applies, and name the cause of the difference', async () => {
    await show(twin({ caution: undefined, evidence: 'swapped' }));
    expect(screen.queryByRole('alert')).not.toBeInTheDocument();
    expect(screen.getByText(/half of it from each lane/)).toBeInTheDocument();
  });

  it('have no figures once the load generator is unreachable', async () => {
    const { client } = await show();
    act(() => client.lose());
    expect(figure('main TTFT p50')).toBe('—');
    expect(figure('twin Output tokens/s')).toBe('—');
    expect(screen.queryByRole('table')).not.toBeInTheDocument();
  });

  it('report why they cannot be compared', async () => {
    await show(new Problem(503, 'The store is closed.'));
    expect(screen.getByText('The store is closed.')).toBeInTheDocument();
    expect(figure('main TTFT p50')).toBe('200 ms');
  });

  it('have no pairs while they settle', async () => {
    await show(twin({ pairs: 0, since: undefined, metrics: [] }));
    expect(screen.getByText(/^Settling: pairs count once both lanes have settled/)).toBeInTheDocument();
  });
});

describe('the arrangement', () => {
  it.each([
    ['Swapped', 'swapped'],
    ['Same on both', 'same'],
  ])('is changed by “%s” after a confirmation', async (name, arranged) => {
    const { client } = await show();
    await userEvent.click(screen.getByRole('button', { name }));
    expect(client.writes).not.toHaveBeenCalled();
    await userEvent.click(screen.getByRole('button', { name: 'Change (Enter)' }));
    expect(client.writes).toHaveBeenCalledWith('PATCH', '/twin', { arranged });
  });

  it('reports why it was not changed', async () => {
    const { client } = await show();
    client.writes.mockRejectedValue(new Problem(409, 'a mode change is in progress'));
    await userEvent.click(screen.getByRole('button', { name: 'Same on both' }));
    await userEvent.click(screen.getByRole('button', { name: 'Change (Enter)' }));
    expect(await screen.findByText('a mode change is in progress')).toBeInTheDocument();
  });

  it('is not offered to viewers', async () => {
    await show(twin(), viewer);
    expect(screen.queryByRole('button', { name: 'Swapped' })).not.toBeInTheDocument();
    expect(screen.getByText('Read only')).toBeInTheDocument();
    expect(screen.queryByRole('button', { name: /showcase/ })).not.toBeInTheDocument();
  });
});

describe('the showcase', () => {
  it('is ended on request', async () => {
    const { client } = await show(twin({ showcase: showcase() }));
    client.writes.mockImplementation(async () => {
      const ended = twin({ showcase: showcase({ state: 'cancelled' }) });
      answer(client, ended);
      return ended;
    });
    await userEvent.click(screen.getByRole('button', { name: 'End the showcase' }));
    expect(client.writes).toHaveBeenCalledWith('DELETE', '/twin/showcase', undefined);
    expect(await screen.findByText('Ended by an operator in turn 2 of 5')).toBeInTheDocument();
    expect(screen.getByRole('button', { name: 'Another showcase (C)' })).toBeInTheDocument();
  });

  it('reports which was first in words', () => {
    const lanes = twin();
    const side = { text: '', done: true, sent: true };
    const b = { ...side, ttft: 0.2 };
    expect(leader(lanes, { a: { ...side, ttft: 0.5 }, b })).toBe('Round-robin was first, by 300 ms');
    expect(leader(lanes, { a: { ...side, error: 'timeout' }, b })).toBe('Round-robin is first: the other one failed');
    expect(leader(lanes, { a: side, b: side })).toBeUndefined();
    expect(tally(lanes, showcase())).toBe('KV-aware first once, Round-robin first never');
    expect(tally(lanes, showcase({ results: [{ turn: 1, a: 1 }] }))).toBeUndefined();
    expect(progress(showcase({ state: 'cancelled', message: 'a sweep begins' }))).toBe(
      'Ended in turn 2 of 5: a sweep begins'
    );
    expect(progress(showcase({ state: 'failed', message: 'no text' }))).toBe('Failed in turn 2 of 5: no text');
  });
});

describe('the curves', () => {
  it('have the color of the mode, and a line style for each lane', () => {
    const histories = { a: [point(0), point(1)], b: [point(0, { mode: 'round_robin' }), point(1)] };
    expect(
      linesOfBoth(histories, 'ttft_p95', { a: 'left', b: 'right' }).map(({ name, tone, look }) => [name, tone, look])
    ).toEqual([
      ['left', 'kv', 'solid'],
      ['right', 'round_robin', 'dashed'],
      ['right', 'kv', 'dashed'],
    ]);
  });

  it('mark a change on both lanes once', () => {
    const a = [point(0), point(10, { mode: 'round_robin' }), point(200, { mode: 'kv' })];
    const b = [point(0, { mode: 'round_robin' }), point(12)];
    expect(changesOfBoth({ a, b }).map(({ at }) => at)).toEqual([10, 200].map((s) => Date.parse(point(s).time)));
  });
});
