import { act, fireEvent, screen, within } from '@testing-library/react';
import userEvent from '@testing-library/user-event';

import { Problem, type RunChange, type RunHistory, type RunRecord } from '../../client';
import { violations } from '../../test/axe';
import { admin, FakeClient, viewer } from '../../test/fixtures';
import { address, renderWith, texts } from '../../test/render';
import { answered, settled } from '../../test/settled';
import { stubSizes } from '../../test/sizes';
import { row } from '../Benchmarks/fixtures';
import History, { RUNS_EVERY } from '.';

beforeEach(() => stubSizes());
afterEach(() => jest.restoreAllMocks());

const run = (day: number, change: Partial<RunRecord> = {}, name = 'nightly'): RunRecord => ({
  id: `${name}-${day}`,
  kind: 'run',
  labels: { commit: `c${day}` },
  started: `2026-12-0${day}T01:00:00Z`,
  ended: `2026-12-0${day}T01:10:00Z`,
  program: '0.3.0',
  result: {
    name,
    title: name,
    kind: 'measured',
    deployment: {},
    rows: [
      row('kv', 120, {
        ttft_mean: day < 4 ? 0.2 : 0.46,
        intervals: { ...row('kv', 120).intervals!, ttft_mean: day < 4 ? [0.195, 0.206] : [0.45, 0.47] },
      }),
    ],
  },
  ...change,
});

const series = (name: string, runs: RunRecord[], changes: RunChange[] = []): RunHistory['series'][number] => ({
  name,
  concurrency: 120,
  mode: 'kv',
  speculation: 'off',
  runs: runs.map(({ id }) => id),
  changes,
});

const nightly = [1, 2, 3, 4, 5, 6].map((day) =>
  run(day, { accepted: day === 2 ? '2026-12-02T09:00:00Z' : undefined, failed: day === 4, verdict: 'TTFT too long' })
);
const changes: RunChange[] = [
  { figure: 'ttft_mean', run: 'nightly-4', before: 0.2, after: 0.46, better: false },
  { figure: 'kv_hit_ratio', run: 'nightly-4', before: 0.71, after: 0.75, better: true },
];
const weekly = [run(1, {}, 'weekly')];
const known: RunHistory = {
  runs: [...weekly, ...nightly],
  series: [series('weekly', weekly), series('nightly', nightly, changes)],
};

async function show(history: RunHistory | Problem = known, me = admin, path = '/history') {
  const client = new FakeClient();
  client.who.mockResolvedValue(me);
  client.reads.mockImplementation(() =>
    history instanceof Problem ? Promise.reject(history) : Promise.resolve(history)
  );
  client.show();
  const result = renderWith(client, <History />, path);
  await settled(client, '/runs');
  return result;
}

const cells = () =>
  within(screen.getByRole('table'))
    .getAllByRole('row')
    .slice(1)
    .map((tr) => texts(tr.children));

describe('the history', () => {
  it('begins with the mean TTFT of the newest series, and says what changed', async () => {
    const { container } = await show();
    const words = screen.getByRole('group', { name: 'Changes' });
    expect(words).toHaveTextContent(
      /^TTFT mean 2\.3 times as long, worse since run nightly-4, 4 Dec 2026, \d\d:10: from 200 ms to 460 ms/
    );
    expect(words).toHaveTextContent(/Also changed: KV hit rate better$/);
    const label = /^TTFT mean by run, 6 runs; last 460 ms, .*commit=c6; 2\.3 times as long, worse since run nightly-4$/;
    expect(screen.getByRole('img', { name: label })).toBeInTheDocument();
    const third = expect.stringMatching(
      /^4 Dec 2026, \d\d:10; run nightly-4; failed; commit=c4; TTFT mean 460 \(450–470\)/
    );
    const reader = screen.getByRole('slider', { name: /read its values/ });
    fireEvent.change(reader, { target: { value: '3' } });
    expect(reader.getAttribute('aria-valuetext')).toEqual(third);
    expect(texts(screen.getByRole('list', { name: 'Lines' }).children)).toEqual([
      ' a run, with its 95 % interval',
      ' mean between changes',
      '✓ accepted',
      '✕ failed',
    ]);
    expect(cells()[2].slice(1)).toEqual([
      'nightly-4',
      '460 450–470',
      'commit=c4',
      '✕ TTFT too long2.3 times as long, worse',
      'Accept',
    ]);
    await userEvent.click(screen.getByRole('button', { name: 'KV hit rate' }));
    expect(screen.getByText('+4.0 points, better', { selector: 'b' })).toBeInTheDocument();
    expect(address()).toBe('/history?figure=kv_hit_ratio');
    expect(await violations(container)).toEqual([]);
  });

  it('shows another series by its address', async () => {
    await show(known, admin, `/history?series=${encodeURIComponent('weekly 120 kv off weekly-1')}`);
    expect(screen.getByText('TTFT mean: no lasting change found in 1 run.')).toBeInTheDocument();
    expect(cells()).toHaveLength(1);
  });

  it('accepts a run and withdraws that, and reports a failure', async () => {
    const { client } = await show();
    await userEvent.click(screen.getByRole('button', { name: 'Accept run nightly-6' }));
    expect(client.writes).toHaveBeenLastCalledWith('PATCH', '/runs/nightly-6', { accepted: true });
    expect(client.reads).toHaveBeenCalledTimes(2);
    act(() => client.show()); // the snapshot that follows
    client.writes.mockRejectedValue(new Problem(503, 'The disk is full.'));
    await userEvent.click(screen.getByRole('button', { name: 'Withdraw run nightly-2' }));
    expect(client.writes).toHaveBeenLastCalledWith('PATCH', '/runs/nightly-2', { accepted: false });
    expect(screen.getByText('The disk is full.')).toBeInTheDocument();
    act(() => client.lose());
    expect(screen.getByRole('button', { name: 'Accept run nightly-6' })).toBeDisabled();
  });

  it('has no such buttons for a viewer', async () => {
    await show(known, viewer);
    expect(screen.queryByRole('button', { name: /^Accept/ })).not.toBeInTheDocument();
    expect(cells()).toHaveLength(6);
  });

  it('says how a run comes here, that a recording has none, or why it is not known', async () => {
    const { unmount } = await show({ runs: [], series: [] });
    expect(screen.getByRole('status')).toHaveTextContent(
      /^No runs yet\. A run with --duration or --requests in this data directory, a trial/
    );
    unmount();
    const recorded = await show(new Problem(404, 'Not found.'));
    expect(screen.getByRole('status')).toHaveTextContent('A recording has no history of runs.');
    recorded.unmount();
    await show(new Problem(502, 'The load generator does not respond.'));
    expect(screen.getByText('The load generator does not respond.')).toBeInTheDocument();
  });

  it('stays with its age after a loss', async () => {
    jest.useFakeTimers({ advanceTimers: true });
    const { client } = await show();
    client.reads.mockRejectedValue(new Problem(502, 'Gone.'));
    await act(() => jest.advanceTimersByTimeAsync(RUNS_EVERY));
    await answered();
    expect(screen.getByText(/^Gone\. Last refreshed at/)).toBeInTheDocument();
    expect(cells()).toHaveLength(6);
    jest.useRealTimers();
  });
});
