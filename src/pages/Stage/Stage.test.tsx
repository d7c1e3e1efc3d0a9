import { act, fireEvent, render, screen, within } from '@testing-library/react';
import userEvent from '@testing-library/user-event';
import { MemoryRouter, Route, Routes, useLocation } from 'react-router-dom';

import { ClientProvider, Problem, type HistoryPoint, type Me, type SweepNow } from '../../client';
import { violations } from '../../test/axe';
import {
  admin,
  clientError,
  column,
  comparison,
  emptyRow,
  FakeClient,
  improved,
  laneSnapshot,
  state,
  sweepSummary,
  ttftP95,
  viewer,
  type LaneChange,
} from '../../test/fixtures';
import { answered, settled } from '../../test/settled';
import { DEBOUNCE, SETTLE } from '../../components/Controls/useConcurrency';
import { laneChange } from '../../components/Diagram/fixtures';
import { bothLanes, showcase, twin } from '../../components/Twin/fixtures';
import { useStageKey } from '../Shell/useStageKey';
import Stage from '.';
import { NOTICE } from './useOperate';

function Elsewhere() {
  useStageKey();
  return <h2>Elsewhere {useLocation().pathname}</h2>;
}

jest.mock('../../lib/useNow', () => ({ useNow: () => Date.now(), useAge: () => 0 }));

const kept: HistoryPoint[] = [];

/** Shows the stage, opened by its key from another page. */
async function show(lane: LaneChange = {}, who: Me = admin) {
  const client = new FakeClient();
  client.who.mockResolvedValue(who);
  client.reads.mockImplementation(async () => ({ points: kept, rows: [] }));
  client.show(lane);
  const result = render(
    <ClientProvider client={client}>
      <MemoryRouter initialEntries={['/guide']} future={{ v7_startTransition: true, v7_relativeSplatPath: true }}>
        <Routes>
          <Route path="/stage" element={<Stage />} />
          <Route path="*" element={<Elsewhere />} />
        </Routes>
      </MemoryRouter>
    </ClientProvider>
  );
  await userEvent.keyboard('s');
  await settled(client, '/history');
  return { client, ...result };
}

const part = (name: string) => screen.getByRole('region', { name });
const figure = (name: string) => screen.getByTestId(name).textContent;
const references = (name: string) =>
  within(screen.getByRole('list', { name: `${name} of the baseline` }))
    .getAllByRole('listitem')
    .map(({ textContent }) => textContent);
const head = () => screen.getByRole('banner').textContent;
const press = (keys: string) => userEvent.keyboard(keys);
const written = ({ client }: { client: FakeClient }) => client.writes.mock.calls;
const notices = () => screen.getByRole('alert').textContent;

/** Three workers, and a step with this TTFT p95. The last 60 s have another one. */
const measured = (p95?: number, change: LaneChange = {}): LaneChange => {
  const { baseline, window } = laneSnapshot();
  return laneChange(3, {
    window: { ...window, metrics: { ...window.metrics, ttft: { p95: 0.9, n: 100 } } },
    baseline: { live: { ...baseline.live, ttft: { p95, n: 480 } } },
    ...change,
  });
};

describe('the display', () => {
  it('has the difference, mode, concurrency, two figures beside the baseline’s, and the workers', async () => {
    const { client, container } = await show(measured(0.5438));
    expect(part('Result')).toHaveTextContent(/^KV-aware: first token 22 % sooner than round-robin, measured here/);
    expect(part('TTFT by turn')).toHaveTextContent(/—$/);
    const ttft_by_turn = [
      { turn: '1', n: 9, p50: 0.612 },
      { turn: '6+', n: 9 },
    ];
    act(() => client.show(measured(0.5438, { ttft_by_turn })));
    expect(part('TTFT by turn')).toHaveTextContent(/1612 ms6\+—$/);
    expect(head()).toMatch(/^KV-aware120 conversationsRunning/);
    expect(head()).not.toContain('caches');
    expect(figure('TTFT p95')).toMatch(/^544 ms !/);
    expect(references('TTFT p95')).toEqual([
      'Round-robin, recorded 725 ms 25.0 % sooner',
      'KV-aware, recorded 725 ms 25.0 % sooner',
    ]);
    expect(figure('Output tokens/s')).toMatch(/^3,168/);
    expect(references('Output tokens/s')[0]).toBe('Round-robin, recorded 2,817 12.5 % more');
    expect(
      within(part('Workers'))
        .getAllByRole('listitem')
        .map(({ textContent }) => textContent)
    ).toEqual(['worker-010', 'worker-111', 'worker-212']);
    expect(await violations(container)).toEqual([]);
  });

  it('is not certain where the interval contains zero, and has the busiest workers where there are many', async () => {
    const same = { ...column().output_tokens_per_second, improvement: { ...improved(3, false), seconds_left: 230 } };
    await show(laneChange(12, { baseline: { columns: [column({ output_tokens_per_second: same })] } }));
    expect(references('Output tokens/s')).toEqual(['Round-robin, recorded 2,817 3.0 % more, not certain']);
    const names = within(part('Workers')).getAllByRole('listitem');
    expect(names.map(({ textContent }) => textContent).slice(0, 2)).toEqual(['worker-1121', 'worker-1020']);
    expect(part('Workers')).toHaveTextContent('the busiest 8; 4 more not shown');
  });

  it('has no figure while stopped, and none that is judged while settling', async () => {
    const { client } = await show({ state: { running: false, phase: 'stopped' } });
    expect([figure('TTFT p95'), figure('Output tokens/s')].map((text) => text?.trim())).toEqual(['—', '—']);
    expect(part('TTFT p95')).toHaveTextContent('stopped');
    act(() => client.show(measured(0.253, { state: { settling: true } })));
    expect(figure('TTFT p95')?.trim()).toBe('253 ms');
    expect(part('TTFT p95')).toHaveTextContent('settling');
    const step = { ...state().step, caches: 'cold' as const };
    act(() => client.show(measured(undefined, { state: { settling: true, step } })));
    expect(head()).toContain('cold caches');
    expect(part('TTFT p95')).toHaveTextContent(/— settling/);
  });

  it('keeps the last figures while the load generator is unreachable', async () => {
    const { client } = await show(measured(0.5438));
    act(() => client.lose('connection refused'));
    expect(head()).toMatch(/^KV-aware120 conversationsLoad generator lost/);
    expect(figure('TTFT p95')?.trim()).toBe('544 ms');
    expect(part('Workers')).toHaveTextContent('worker-010');
    expect(part('Result')).toHaveTextContent(/^Load generator lost since \d\d:\d\d:\d\dConnection refused/);
  });

  it('reports a missed objective, a much larger value, and spoiled figures', async () => {
    const { live } = comparison();
    const columns = [column({ ttft: ttftP95(0.3, improved(-133)) })];
    const { client } = await show({ baseline: { live: { ...live, ttft: { p95: 0.7, n: 480 } }, columns } });
    expect(figure('TTFT p95')).toMatch(/^700 ms ✕misses the SLO/);
    expect(references('TTFT p95')).toEqual(['Round-robin, recorded 300 ms 2.3 times as long']);
    act(() => client.show({ target: { reachable: false, problem: 'connection refused' } }));
    expect(notices()).toContain('The target is unreachable. Connection refused');
  });

  it('gives the reason of a withheld SLO beside the figure, and nowhere else', async () => {
    const { live, columns } = comparison();
    const { client } = await show();
    const baseline = { live: { ...live, ttft: { p95: 0.61, p95_error: 0.02, n: 9 } }, columns };
    act(() => client.show({ baseline }, { client: clientError('client_bottleneck', { of: 'threshold' }) }));
    expect(screen.getAllByText(/own error/)).toHaveLength(1);
    expect(figure('TTFT p95')?.trim()).toBe('610 ms');
    expect(notices()).toBe('');
  });

  it('names a cap that holds the load down', async () => {
    await show({ state: { concurrency: { target: 60, actual: 60, limited_by: 'target_rps' } } });
    expect(notices()).toBe('The cap of 25 requests/s holds the load down.');
  });

  it.each([
    ['noticeable', clientError('noticeable')],
    ['too large, but nothing is withheld for it', clientError('client_bottleneck')],
  ])('does not mention an own error that is %s', async (_, error) => {
    const { client } = await show();
    act(() => client.show({}, { client: error }));
    expect(notices()).toBe('');
    expect(screen.queryByText(/own error/)).not.toBeInTheDocument();
  });
});

describe('a trial', () => {
  it('has the screen, with the figures of its own table, the span in progress and the next look', async () => {
    const now: SweepNow = {
      number: 1,
      attempt: 1,
      arm: 'b',
      mode: { mode: 'kv', speculation: 'off' },
      concurrency: 120,
      phase: 'counting',
      seconds: 34,
      elapsed_seconds: 90,
      of: 60,
      turns: 80,
      warming_up: 0,
    };
    const sweep = sweepSummary({ progress: { spans: 1, spoiled: 0, seconds_used: 90, seconds_least: 150, span: now } });
    const row = { ...emptyRow(120, 'kv'), speculation: 'off' as const, ttft_mean: 0.497, ttft: { p95: 1.204 } };
    const { client, container } = await show();
    client.reads.mockImplementation(async (path) =>
      path.startsWith('/sweeps/') ? { ...sweep, rows: [row], trial: { first_look: 2 } } : { points: kept }
    );
    act(() => client.show({}, bothLanes({ state: { sweep } })));
    await settled(client, '/sweeps/t1');
    expect(part('Trial')).toHaveTextContent(
      /^Span 2 of 4: KV-aware at 120, counting: 34 of at least 60 s, 80 turnsFirst look in about 2 min 30 s, at /
    );
    const arms = within(screen.getByRole('list', { name: 'TTFT mean of the arms' })).getAllByRole('listitem');
    expect(arms.map(({ textContent }) => textContent)).toEqual([
      'Round-robin —TTFT p95 —',
      'KV-aware 497 msTTFT p95 1,204 ms',
    ]);
    expect(screen.queryByTestId('TTFT p95')).not.toBeInTheDocument();
    expect(await violations(container)).toEqual([]);
  });
});

describe('the keys', () => {
  it('stop, but not by a key that is held down', async () => {
    const shown = await show();
    await press(' ');
    const held = fireEvent.keyDown(screen.getByRole('button', { name: 'Stop (Enter)' }), { key: ' ', repeat: true });
    expect(held).toBe(false);
    expect(written(shown)).toEqual([]);
  });

  it('report why a mode is not changed, or nothing is measured anew', async () => {
    const shown = await show();
    await press('k');
    expect(notices()).toBe('KV-aware routing is already active.');
    act(() => shown.client.show({ state: { modes: [{ mode: 'kv', speculation: 'off' }] } }));
    await press('r');
    expect(notices()).toBe('The driver “simulated” does not offer Round-robin routing.');
    act(() => shown.client.show({ state: { running: false, phase: 'stopped' } }));
    await press('n');
    expect(notices()).toBe('The workload does not run, so there is nothing to measure anew.');
    expect(written(shown)).toEqual([]);
  });

  it('raise and lower the concurrency by one increment, within the slider', async () => {
    const shown = await show();
    jest.useFakeTimers();
    try {
      ['ArrowUp', 'ArrowUp', 'ArrowDown', 'ArrowUp'].forEach((key) => fireEvent.keyDown(document.body, { key }));
      expect(head()).toContain('140 conversations');
      await act(() => jest.advanceTimersByTimeAsync(DEBOUNCE));
      expect(written(shown)).toEqual([['PATCH', '/workload?lane=main', { concurrency: 140 }]]);
      act(() => shown.client.show({ state: { concurrency: { target: 180, actual: 180 } } }));
      await act(() => jest.advanceTimersByTimeAsync(SETTLE));
      fireEvent.keyDown(document.body, { key: 'ArrowUp' });
      expect(notices()).toBe('180 conversations is the highest value of the slider.');
      expect(written(shown)).toHaveLength(1);
      await act(() => jest.advanceTimersByTimeAsync(NOTICE));
      expect(notices()).toBe(''); // the notice disappears
    } finally {
      jest.useRealTimers();
    }
  });

  it('raise and lower a rate, too', async () => {
    const shown = await show({ state: { concurrency: { target: '49.5/s', actual: 84 } } });
    expect(head()).toMatch(/^KV-aware49.5 conversations\/sRunning49.5 conversations\/s · 84 in progress/);
    jest.useFakeTimers();
    try {
      ['ArrowUp', 'ArrowUp'].forEach((key) => fireEvent.keyDown(document.body, { key }));
      expect(notices()).toBe('50 conversations/s is the highest value of the slider.');
      await act(() => jest.advanceTimersByTimeAsync(DEBOUNCE));
      expect(written(shown)).toEqual([['PATCH', '/workload?lane=main', { concurrency: '50/s' }]]);
    } finally {
      jest.useRealTimers();
    }
  });

  it('report why a request was refused', async () => {
    const shown = await show();
    shown.client.writes.mockRejectedValueOnce(new Problem(409, 'a mode change is in progress'));
    await press(' ');
    await press('{Enter}');
    await answered();
    expect(notices()).toBe('The workload was not stopped: a mode change is in progress');
  });

  it('only stop the workload while a trial has it, with a notice', async () => {
    // The state between two spans of a sweep.
    const shown = await show({ state: { phase: 'stopped', running: false, sweep: sweepSummary() } });
    const words =
      'A trial is in progress: KV-aware vs. Round-robin at 120. Pause it on the Benchmarks ' +
      'page to control the workload by hand.';
    for (const keys of ['k', 'n', '{ArrowUp}']) {
      await press(keys);
      expect(notices()).toContain(words);
    }
    expect(written(shown)).toEqual([]);
    await press(' ');
    expect(screen.getByText('Stop the workload and pause the trial?')).toBeInTheDocument();
    await press('{Enter}');
    await answered();
    expect(written(shown)).toEqual([['POST', '/workload/stop?lane=main', { drain: false }]]);
  });

  it('begin a trial on the load in progress, which any of them ends', async () => {
    const shown = await show();
    await press('d');
    await answered();
    expect(written(shown)).toEqual([
      [
        'POST',
        '/sweeps?lane=main',
        { kind: 'trial', title: 'On the stage', levels: [120], caches: 'warm', max_time: 600 },
      ],
    ]);
    const sweep = sweepSummary();
    sweep.request.title = 'On the stage';
    for (const key of ['d', 'k', 'n', '{ArrowUp}', ' ']) {
      act(() => shown.client.show({ state: { sweep } }));
      await press(key);
      await answered();
      expect(written(shown).at(-1)).toEqual(['PATCH', `/sweeps/${sweep.id}`, { state: 'cancelled' }]);
    }
    expect(written(shown)).toHaveLength(6);
  });

  it('show viewers the reason, and do nothing after a loss', async () => {
    const shown = await show({}, viewer);
    for (const key of [' ', 'k', 'r', 'n', '{ArrowUp}']) {
      await press(key);
      expect(notices()).toBe('The role Viewer can view but not start or stop the workload.');
    }
    expect(written(shown)).toEqual([]);
    expect(screen.queryByRole('region', { name: 'Workload controls' })).not.toBeInTheDocument();
    shown.unmount();
    const other = await show();
    act(() => other.client.lose());
    await press(' ');
    expect(notices()).toMatch(/Nothing can be changed while the load generator is unreachable\.$/);
    expect(written(other)).toEqual([]);
  });
});

describe('two routers', () => {
  it('are shown both, or one of them by a key, which the address keeps', async () => {
    const { client, container } = await show(laneChange(3));
    await press('t');
    expect(part('TTFT p95')).toBeInTheDocument(); // with one lane there is no such key
    client.reads.mockImplementation(async (path) => (path === '/twin' ? twin() : { points: kept }));
    act(() => client.show({}, bothLanes()));
    await settled(client, '/twin', '/history?lane=twin');
    expect(part('Lane main')).toHaveTextContent(/^KV-aware/);
    expect(part('Lane twin')).toHaveTextContent(/^Round-robin/);
    expect(screen.queryByRole('region', { name: 'TTFT p95' })).not.toBeInTheDocument();
    expect(head()).toMatch(/^KV-aware and Round-robin/);
    expect(figure('twin TTFT p95')).toMatch(/^700 ms ✕/);
    const { textContent } = container;
    expect(textContent).not.toMatch(/https?:|lane|twin/i);
    expect(textContent?.match(/equal has not been checked/g)).toHaveLength(1);
    const begun = twin({ showcase: showcase() });
    client.writes.mockResolvedValue(begun);
    client.reads.mockImplementation(async (path) => (path === '/twin' ? begun : { points: kept }));
    await press('c');
    expect(client.writes).toHaveBeenLastCalledWith('POST', '/twin/showcase', {});
    expect(await screen.findByText('Turn 2 of 5')).toBeInTheDocument();
    await press('t');
    expect(part('TTFT p95')).toBeInTheDocument();
    await press('?');
    expect(screen.getByText('Side by side: starts a showcase')).toBeInTheDocument();
    await press('{Escape}');
    await press('{Escape}');
    expect(screen.getByText('Elsewhere /guide')).toBeInTheDocument(); // as without the further view
  });
});
