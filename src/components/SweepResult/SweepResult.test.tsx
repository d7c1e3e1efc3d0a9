import { act, screen, waitFor, within } from '@testing-library/react';
import userEvent from '@testing-library/user-event';

import { Problem, type BaselineRow, type Sweep, type SweepSummary } from '../../client';
import { violations } from '../../test/axe';
import { FakeClient } from '../../test/fixtures';
import { renderWith, texts } from '../../test/render';
import { answered } from '../../test/settled';
import { stubSizes } from '../../test/sizes';
import { ranked, recorded, row, sweep, trial } from './fixtures';
import { rangeOf } from './Looks';
import { metricsOf } from './metrics';
import { comparableRows, chosenOf, curvesOf } from './model';
import { SweepResult, type SweepPart } from './SweepResult';

jest.mock('../../lib/useNow', () => ({ useNow: () => Date.now(), useAge: () => 0 }));

beforeEach(() => stubSizes());
afterEach(() => {
  jest.useRealTimers();
  jest.restoreAllMocks();
});

/** A load generator with these sweeps, newest first. */
function having(...all: Sweep[]) {
  const client = new FakeClient();
  client.show();
  client.reads.mockImplementation((path) => {
    if (path === '/baselines') {
      return Promise.resolve({ baselines: [recorded] });
    }
    if (path === '/sweeps') {
      return Promise.resolve({ sweeps: all, limits: {}, defaults: [], modes: [], metrics: [] });
    }
    const found = all.find(({ id }) => path === `/sweeps/${id}`);
    return found ? Promise.resolve(found) : Promise.reject(new Problem(404, `there is no ${path}`));
  });
  return client;
}

function Shown({ part, id, onChoose }: { part: SweepPart; id: string; onChoose(id: string): void }) {
  return <SweepResult lane="main" id={id} part={part} pageHref="/a/app/benchmarks" onChoose={onChoose} />;
}

function show(client: FakeClient, part: SweepPart, id = '') {
  const onChoose = jest.fn();
  const view = renderWith(client, <Shown part={part} id={id} onChoose={onChoose} />);
  return { ...view, onChoose };
}

describe('which sweep is shown', () => {
  it('is none before the first, with a link to begin one', async () => {
    show(having(), 'verdict');
    expect(await screen.findByText('No trial, sweep or capacity search yet')).toBeInTheDocument();
    expect(screen.getByRole('link', { name: 'Open Benchmarks' })).toHaveAttribute('href', '/a/app/benchmarks');
    expect(screen.queryByText('Show')).not.toBeInTheDocument();
  });

  it('is reported once', async () => {
    const verdict = show(having(), 'verdict');
    await screen.findByText('No trial, sweep or capacity search yet');
    verdict.unmount();
    for (const part of ['curves', 'spans'] as const) {
      const { container, unmount } = show(having(), part);
      await waitFor(() => expect(container).toBeEmptyDOMElement());
      unmount();
    }
  });

  it('is the newest, until one is chosen', async () => {
    const newer = sweep({ id: 's2', request: { ...sweep().request, title: 'After the change' } });
    const { onChoose } = show(having(newer, sweep()), 'verdict');
    expect(await screen.findByRole('heading', { name: 'After the change' })).toBeInTheDocument();
    await userEvent.click(screen.getByRole('combobox', { name: 'Show' }));
    await userEvent.click(await screen.findByText('Sweep: Round-robin, KV-aware from 60 to 120'));
    expect(onChoose).toHaveBeenCalledWith('s1');
  });

  it('is the one with the id', async () => {
    const newer = sweep({ id: 's2', request: { ...sweep().request, title: 'After the change' } });
    show(having(newer, sweep()), 'verdict', 's1');
    const name = 'Sweep: Round-robin, KV-aware from 60 to 120';
    expect(await screen.findByRole('heading', { name })).toBeInTheDocument();
  });

  it('may have been deleted', async () => {
    show(having(sweep()), 'curves', 'gone');
    expect(await screen.findByText('This sweep has been deleted')).toBeInTheDocument();
  });

  it('is one of the lane', () => {
    const all: Array<Pick<SweepSummary, 'id' | 'lane'>> = [
      { id: 'b', lane: 'twin' },
      { id: 'a', lane: 'main' },
    ];
    expect(chosenOf(all, 'main', '')?.id).toBe('a');
    expect(chosenOf(all, 'other', '')).toBeUndefined();
  });
});

describe('the verdict', () => {
  it('of a trial has the load generator’s text, with each difference and its interval', async () => {
    const words = ['KV-aware wins by 42.9 %.', 'Throughput agrees.'];
    const { container } = show(having(trial({ words })), 'verdict');
    expect(await screen.findByText(words[0])).toBeInTheDocument();
    expect(screen.getByText(words[1])).toBeInTheDocument();
    const item = (name: RegExp) => screen.getByText(name).closest('li');
    expect(item(/^TTFT p95$/)).toHaveTextContent('700 ms');
    expect(item(/^TTFT p95$/)).toHaveTextContent('−42.9 %(−50.0 to −35.0 %)KV-aware better');
    expect(item(/^KV hit rate$/)).toHaveTextContent('+76.3 points(+75.1 to +77.5 points)KV-aware better');
    expect(item(/^TPOT p95$/)).toHaveTextContent('no difference of interest');
    expect(await violations(container)).toEqual([]);
  });

  it('of a trial says which turns failed, and where they are in no mean', async () => {
    const decided = trial();
    decided.trial!.primary!.metric = 'ttft_mean';
    decided.trial!.succeeded = true;
    decided.trial!.failures = { a: { failed: 0, ended: 900 }, b: { failed: 6, ended: 900 }, interval: [-0.002, 0.016] };
    show(having(decided), 'verdict');
    expect(await screen.findByText(/, successful turns only$/)).toBeInTheDocument();
    expect(
      screen.getByText('Failed turns: 0 of 900 under Round-robin, 6 of 900 under KV-aware (−0.2 to +1.6 points).')
    ).toBeInTheDocument();
  });

  it('of a trial of three modes has their places, every pair and the modes that are not different', async () => {
    const { container } = show(having(ranked()), 'verdict');
    const rows = (name: string) =>
      within(screen.getByRole('table', { name }))
        .getAllByRole('row')
        .slice(1)
        .map((row) => texts(within(row).getAllByRole('cell')));
    expect(await screen.findByText('Least loaded and Round-robin are not different: less than 5.0 %.')).toBeVisible();
    expect(rows('Ranking')).toEqual([
      ['1', '400 ms', 'yes', 'to the end', '1 of 900'],
      ['2 to 3', '700 ms', 'no', '2 blocks', '1 of 900'],
      ['2 to 3', '700 ms', 'no', '2 blocks', '1 of 900'],
    ]);
    expect(rows('Every pair')).toEqual([
      ['Least loaded', '−42.9 %', '−50.0 to −35.0 %', '2', 'KV-aware better'],
      ['Round-robin', '−42.9 %', 'not bounded yet', '2', 'KV-aware better, KV-aware fails more turns'],
      ['Round-robin', '−1.0 %', '−3.0 to +2.0 %', '2', 'no difference of interest'],
    ]);
    expect(screen.getByText(/^KV-aware compared with Least loaded after 6 blocks of spans/)).toBeVisible();
    expect(await violations(container)).toEqual([]);
  });

  it('of a trial draws every look: an interval far wider than the last is cut, the deciding one is not', () => {
    const { looks, boundaries } = trial().trial!;
    const [low, high] = rangeOf(looks, boundaries);
    expect([low, high]).toEqual([expect.closeTo(-0.9), expect.closeTo(0.6)]);
    expect(rangeOf(looks.slice(2), boundaries)).toEqual([-0.5, 0.05]);
  });

  it('of a capacity search has the level of each mode with its interval, as far as it is certain', async () => {
    const none = { isolated: [], tested: [] };
    const kv = (speculation: 'off' | 'draft' | 'eagle3') => ({ ...none, mode: { mode: 'kv' as const, speculation } });
    const open = { concurrency: 14, spans: 8, verdict: 'open' } as const;
    const meets = { concurrency: 60, spans: 2, verdict: 'meets' } as const;
    const misses = { concurrency: 28, spans: 3, verdict: 'misses' } as const;
    const capacity: Sweep['capacity'] = {
      modes: [
        { ...kv('off'), level: 128, interval: [120, 135], isolated: [150], tested: [meets] },
        { ...none, mode: { mode: 'round_robin', speculation: 'off' }, level: 0 },
        { ...none, mode: { mode: 'least_loaded', speculation: 'off' } },
        { ...kv('draft'), level: 96, interval: [0, 180], above: true },
        { ...kv('eagle3'), level: 0, interval: [0, 28], tested: [open, misses] },
      ],
      crossing: { level: 148, interval: [140, 160], below: 'b' },
    };
    show(having(sweep({ request: { ...sweep().request, kind: 'capacity' }, capacity })), 'verdict');
    expect(await screen.findByText('cannot be determined from these levels')).toBeInTheDocument();
    for (const words of ['128 (120–135)', 'none of the levels tested', 'not known yet', 'possibly none (0–28)']) {
      expect(screen.getByText(words)).toBeInTheDocument();
    }
    expect(screen.getByText('meets the SLOs at 60; also meets them above the first miss, at 150')).toBeInTheDocument();
    expect(screen.getByText('148 (140–160)')).toBeInTheDocument();
    expect(screen.getByText('below it, KV-aware has the lower TTFT p95')).toBeInTheDocument();
  });
});

describe('a sweep in progress', () => {
  const now = {
    number: 2,
    attempt: 1,
    mode: { mode: 'kv' as const, speculation: 'off' as const },
    concurrency: 120,
    phase: 'counting' as const,
    seconds: 40,
    elapsed_seconds: 60,
    of: 90,
    turns: 31,
    warming_up: 0,
  };
  const going = (change: Partial<Sweep> = {}) =>
    sweep({
      state: 'running',
      ended: undefined,
      progress: { spans: 2, of: 4, spoiled: 0, seconds_used: 300, seconds_left: 600, span: now },
      rows: sweep().rows.slice(0, 2),
      ...change,
    });

  it('shows its progress, as the snapshot reports it every second', async () => {
    const client = having(going());
    show(client, 'verdict');
    expect(
      await screen.findByText('Span 3: KV-aware at 120, counting: 40 of at least 90 s, 31 turns.')
    ).toBeInTheDocument();
    expect(screen.getByText(/2 of 4 spans measured; about 10 min 0 s left, until \d\d:\d\d\./)).toBeInTheDocument();
    expect(screen.getByRole('progressbar', { name: 'Progress' })).toHaveAttribute('value', '360');
    const summary = going();
    act(() =>
      client.show({
        state: { sweep: { ...summary, progress: { ...summary.progress, span: { ...now, seconds: 41 } } } },
      })
    );
    expect(screen.getByText(/counting: 41 of at least 90 s/)).toBeInTheDocument();
  });

  it('grows', async () => {
    jest.useFakeTimers();
    let level = going({ rows: [] });
    const client = having(level);
    const others = client.reads.getMockImplementation();
    client.reads.mockImplementation((path) => (path === '/sweeps/s1' ? Promise.resolve(level) : others!(path)));
    show(client, 'curves');
    await act(() => jest.advanceTimersByTimeAsync(100));
    expect(screen.getByText(/^No valid span yet/)).toBeInTheDocument();
    level = going({ rows: sweep().rows.slice(0, 2) });
    await act(() => jest.advanceTimersByTimeAsync(5000));
    expect(screen.queryByRole('row', { name: /^120 KV-aware/ })).not.toBeInTheDocument();
    level = going({ rows: sweep().rows });
    await act(() => jest.advanceTimersByTimeAsync(5000));
    expect(screen.getByRole('row', { name: /^120 KV-aware/ })).toBeInTheDocument();
  });

  it('shows the time of its figures while the load generator is unreachable', async () => {
    jest.useFakeTimers();
    const client = having(going());
    show(client, 'verdict');
    await act(() => jest.advanceTimersByTimeAsync(100));
    client.reads.mockRejectedValue(new Problem(503, 'connection refused'));
    act(() => client.lose());
    await act(() => jest.advanceTimersByTimeAsync(11_000));
    expect(screen.getByText('The load generator is unreachable')).toBeInTheDocument();
    expect(screen.getByText(/^Last updated at /)).toBeInTheDocument();
    expect(screen.getByRole('heading', { name: /^Sweep: / })).toBeInTheDocument();
  });
});

describe('the curves', () => {
  it('are beside the recorded result, with all of their figures as a table', async () => {
    const { container } = show(having(sweep()), 'curves');
    const names = ['TTFT p95, ms', 'TTFT p50, ms', 'Output tokens/s', 'KV hit rate, %', 'TPOT p95, ms'];
    for (const name of names) {
      expect((await screen.findAllByText(name)).length).toBe(2); // the curve, and its column
    }
    expect(await screen.findByText(/: 3 × H200/)).toBeInTheDocument();
    const first = within(screen.getByRole('row', { name: /^60 KV-aware/ })).getAllByRole('cell')[2];
    expect(first).toHaveTextContent('400');
    expect(first).toHaveTextContent('360–440');
    expect(first).toHaveTextContent('recorded 446');
    await answered();
    expect(await violations(container)).toEqual([]);
  });

  it('have a table with the figures of speculation where something was drafted', () => {
    const keys = (change: Partial<BaselineRow>) =>
      metricsOf([{ ...row(60, 'kv', 0.4), ...change }]).map(({ key }) => key);
    const drafted = keys({ acceptance_rate: 0.6, tokens_per_step: 2.5 });
    expect(drafted.slice(-2)).toEqual(['acceptance_rate', 'tokens_per_step']);
    expect(keys({ tokens_per_step: 1, gpu_memory_bytes: 2 ** 36 })).toEqual(drafted.slice(0, -2));
  });

  it('have bands of the intervals, an objective, and only comparable recorded values', () => {
    const { rows, request } = sweep();
    const beside = comparableRows(rows, recorded.rows);
    expect(beside.map(({ mode, concurrency }) => `${mode} ${concurrency}`)).toEqual(['kv 60']);
    const atRates = recorded.rows.map((row) => ({ ...row, concurrency: `${row.concurrency}/s` }));
    expect(comparableRows(rows, atRates)).toEqual([]);
    const [ttft] = curvesOf(rows, beside, request);
    expect(ttft.metric.key).toBe('ttft_p95');
    expect(ttft.lines.map(({ key }) => key)).toEqual([
      'dashed kv not_recorded',
      'solid round_robin off',
      'solid kv off',
    ]);
    expect(ttft.bands?.find(({ of }) => of === 'solid kv off')?.points).toEqual([
      [60, 0.4 * 0.9, 0.4 * 1.1],
      [120, 0.5 * 0.9, 0.5 * 1.1],
    ]);
    expect([ttft.slo, ttft.ceiling]).toEqual([0.6, 2.4]);
  });
});

describe('the spans', () => {
  it('are shown with the reasons for not counting, or that none has ended', async () => {
    const { unmount } = show(having(sweep({ spans: [] })), 'spans');
    expect(await screen.findByText('No span has ended yet.')).toBeInTheDocument();
    unmount();
    const { container } = show(having(sweep()), 'spans');
    const rows = texts((await screen.findAllByRole('row')).slice(1));
    expect(rows).toHaveLength(3);
    expect(rows[0]).toMatch(/^2, second attemptKV-aware60400 ms40011 min 30 s.*counts$/);
    expect(rows[1]).toMatch(/does not count: 3 of 20 turns failed, the latest with timeout$/);
    expect(screen.getByRole('columnheader', { name: 'Mode' })).toBeVisible();
    expect(await violations(container)).toEqual([]);
  });

  it('of a trial name its arms, as the figures do', async () => {
    const { unmount } = show(having(trial({ spans: [{ ...sweep().spans[0], arm: 'a' }] })), 'spans');
    expect(await screen.findByRole('columnheader', { name: 'Arm' })).toBeVisible();
    unmount();
    show(having(trial()), 'curves');
    expect(await screen.findByRole('columnheader', { name: 'Arm' })).toBeVisible();
    expect(screen.getByRole('table', { name: /^Figures by concurrency and arm/ })).toBeVisible();
  });
});
