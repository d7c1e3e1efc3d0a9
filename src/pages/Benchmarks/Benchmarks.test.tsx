import { act, fireEvent, render, screen, waitFor, within } from '@testing-library/react';
import userEvent from '@testing-library/user-event';
import { MemoryRouter, useLocation } from 'react-router-dom';

import { ClientProvider, Problem, useLive, useMe, type Sweep, type SweepList } from '../../client';
import { violations } from '../../test/axe';
import { admin, FakeClient, viewer } from '../../test/fixtures';
import { answered, settled } from '../../test/settled';
import { stubSizes } from '../../test/sizes';
import { defaults, difference, listOf, now, row, span, summaryOf, trial } from './fixtures';
import { LANE } from '../lane';
import Benchmarks from '.';
import { SweepView } from './SweepView';

beforeEach(() => stubSizes());
afterEach(() => jest.restoreAllMocks());

const done = trial({
  id: 't0',
  state: 'done',
  ended: '2026-11-20T10:02:00Z',
  progress: { spans: 8, spoiled: 1, seconds_used: 1300 },
  words: ['KV-aware routing has a 25 % lower TTFT p95 than round-robin.', 'Throughput is higher, too.'],
  trial: {
    method: 'blocks',
    verdict: 'b_better',
    blocks: 4,
    primary: difference(),
    looks: [],
    boundaries: [-0.0476, 0.05],
    others: [],
  },
});

/** A load generator with these sweeps. */
class Booth extends FakeClient {
  constructor(public sweeps: Sweep[] = []) {
    super();
    this.reads.mockImplementation((path) => this.answer(path));
    this.writes.mockImplementation((method) => this.change(method));
  }

  offered: SweepList | Problem | undefined;
  refusal: Problem | undefined;

  override write = <T,>(method: string, path: string, body: unknown) =>
    (path.startsWith('/sweeps/outlook')
      ? Promise.resolve({ words: ['It finds a difference of 12.0 % or more.'] })
      : this.writes(method, path, body)) as Promise<T>;

  private answer(path: string): Promise<unknown> {
    if (path === '/baselines') {
      const rows = [row('kv', 120), row('round_robin', 120)];
      return Promise.resolve({
        baselines: [
          {
            name: 'h200',
            title: 'H200',
            kind: 'recorded',
            deployment: {},
            provenance: { printed_levels: [60, 80] },
            rows,
          },
        ],
      });
    }
    if (path === '/sweeps') {
      const list = this.offered ?? listOf(...this.sweeps);
      return list instanceof Problem ? Promise.reject(list) : Promise.resolve(list);
    }
    const found = this.sweeps.find(({ id }) => path === `/sweeps/${id}`);
    return found ? Promise.resolve(found) : Promise.reject(new Problem(404, 'there is no such sweep'));
  }

  private change(method: string): Promise<unknown> {
    if (this.refusal) {
      return Promise.reject(this.refusal);
    }
    return Promise.resolve(method === 'POST' ? { ...trial(), title: 'Mine' } : {});
  }
}

function Address() {
  return <output aria-label="Address">{useLocation().search}</output>;
}

/**
 * Renders only the view of the first sweep. The page around it, whose fields take jsdom most of the time, is omitted.
 */
function One({ id }: { id: string }) {
  return <SweepView id={id} live={useLive(LANE)} me={useMe()} onDeleted={() => undefined} />;
}

async function showOne(sweep: Sweep, { me = admin, booth = new Booth([sweep]) } = {}) {
  begin(booth, me);
  const result = render(
    <ClientProvider client={booth}>
      <One id={sweep.id} />
    </ClientProvider>
  );
  await settled(booth, `/sweeps/${sweep.id}`);
  return { booth, ...result };
}

function begin(booth: Booth, me: typeof admin) {
  booth.who.mockResolvedValue(me);
  const running = booth.sweeps.find(({ state }) => state === 'running');
  booth.show({ state: running ? { sweep: summaryOf(running) } : {} });
}

async function show(booth: Booth, { me = admin, path = '/benchmarks' } = {}) {
  begin(booth, me);
  const result = render(
    <ClientProvider client={booth}>
      <MemoryRouter initialEntries={[path]} future={{ v7_startTransition: true, v7_relativeSplatPath: true }}>
        <Benchmarks />
        <Address />
      </MemoryRouter>
    </ClientProvider>
  );
  await settled(booth, '/sweeps');
  await answered();
  return { booth, ...result };
}

const region = (name: string) => within(screen.getByText(name, { selector: 'section h2' }).closest('section')!);
const click = async (element: HTMLElement) => {
  fireEvent.click(element);
  await answered();
};
const type = (name: string, value: string) =>
  fireEvent.change(screen.getByLabelText(new RegExp(`^${name}`), { selector: 'input' }), { target: { value } });
const newTrial = () => screen.getByRole('button', { name: 'New trial' });
const startButton = () => region('Start').getByRole('button', { name: /^Start the/ });

describe('the form', () => {
  it('begins with the load generator’s default trial, and starts the requested one', async () => {
    const { booth, container } = await show(new Booth([done]));
    expect(screen.queryByRole('form')).not.toBeInTheDocument(); // results are shown first
    await click(newTrial());
    expect(region('Start').getByRole('radio', { name: /^Trial/ })).toBeChecked();
    type('Concurrency', '40');
    expect(await screen.findByText('It finds a difference of 12.0 % or more.')).toBeInTheDocument();
    await click(screen.getByRole('button', { name: 'More settings' }));
    expect(await violations(container)).toEqual([]);
    type('Span length', '5');
    await click(startButton());
    const { title: _, ...usual } = defaults.trial;
    expect(booth.writes.mock.calls).toEqual([['POST', '/sweeps?lane=main', { ...usual, levels: [40], span: 5 }]]);
    expect(screen.queryByRole('form')).not.toBeInTheDocument();
  });

  it('has a form for each kind, which keeps its values, and the address names the kind', async () => {
    await show(new Booth());
    expect(region('All results').getByText(/^No results yet/)).toBeInTheDocument();
    type('Concurrency', '40');
    await click(screen.getByRole('radio', { name: /^Capacity search/ }));
    expect(screen.getByLabelText('Address')).toHaveTextContent('?kind=capacity');
    expect(screen.getByRole('textbox', { name: /^Initial levels/ })).toHaveValue('60, 100, 140, 180');
    expect(screen.getByRole('textbox', { name: /^SLO: TTFT p95/ })).toHaveValue('600');
    await click(screen.getByRole('radio', { name: /^Sweep/ }));
    await click(screen.getByRole('checkbox', { name: 'Round-robin' }));
    expect(region('Start').getByText(/^9 spans of at least 6 min/)).toBeInTheDocument();
    await click(screen.getByRole('radio', { name: /^Trial/ }));
    expect(screen.getByRole('textbox', { name: /^Concurrency/ })).toHaveValue('40');
    await click(screen.getByRole('button', { name: 'Reset to the defaults' }));
    expect(screen.getByRole('textbox', { name: /^Concurrency/ })).toHaveValue('120');
  });

  it('shows an invalid value at its field, and does not start', async () => {
    const { booth } = await show(new Booth());
    type('Concurrency', '0');
    expect(region('Start').getByText('A whole number from 1 to 10000')).toBeInTheDocument();
    expect(startButton()).toBeDisabled();
    expect(booth.writes).not.toHaveBeenCalled();
  });

  it('shows the load generator’s refusal at its field, unfolded', async () => {
    const booth = new Booth();
    booth.refusal = new Problem(422, 'span: 60 is too short here', 'span', 'from 90');
    await show(booth);
    expect(screen.queryByRole('textbox', { name: /^Span length/ })).not.toBeInTheDocument();
    await click(startButton());
    expect(screen.getByText('span: 60 is too short here')).toBeInTheDocument();
    expect(screen.getByRole('textbox', { name: /^Span length/ })).toBeInTheDocument();
    booth.refusal = new Problem(409, 'a mode change is in progress');
    type('Span length', '90');
    await click(startButton());
    expect(screen.getByText('The trial was not started')).toBeInTheDocument();
    expect(screen.getByText('a mode change is in progress')).toBeInTheDocument();
  });

  it('is enabled for operators; others see the reason', async () => {
    await show(new Booth(), { me: viewer });
    expect(startButton()).toBeDisabled();
    expect(region('Start').getByText('The role Viewer can view benchmarks but not start them.')).toBeInTheDocument();
  });

  it('reports why a kind cannot be started', async () => {
    const booth = new Booth();
    booth.offered = { ...listOf(), defaults: [], modes: [] };
    await show(booth);
    expect(screen.getByText('The cluster has not reported its routing modes yet. Is it running?')).toBeInTheDocument();
  });

  it('does not start a second one while one is in progress', async () => {
    await show(new Booth([trial()]));
    await click(newTrial());
    expect(startButton()).toBeDisabled();
    expect(
      region('Start').getByText(/^A trial is in progress: KV-aware vs. Round-robin at 120\. Only one/)
    ).toBeInTheDocument();
  });
});

describe('what is under way', () => {
  it('has its remaining time, its span in words, and its differences so far', async () => {
    const { container } = await showOne(trial());
    expect(
      screen.getByText(
        /^7 spans measured, 1 spoiled; about 6 min 40 s left, until \d\d:\d\d \(between \d\d:\d\d and \d\d:\d\d\)\.$/
      )
    ).toBeInTheDocument();
    expect(screen.getByRole('progressbar')).toHaveAttribute('value', '1260');
    expect(screen.getByRole('progressbar')).toHaveAttribute('max', '3660');
    expect(
      screen.getByText('Span 7: KV-aware at 120, warming up: 14 of 120 initial conversations still in progress')
    ).toBeInTheDocument();
    const decides = within(screen.getByRole('list', { name: 'Primary metric' }));
    expect(decides.getByText('−25.0 %')).toBeInTheDocument();
    expect(decides.getByText('(−40.0 to +2.0 %)')).toBeInTheDocument();
    expect(decides.getByText('not decided')).toBeInTheDocument();
    const others = within(screen.getByRole('list', { name: 'Other metrics' })).getAllByRole('listitem');
    expect(others[0]).toHaveTextContent('Round-robin 2,817 tokens/s, KV-aware 3,168 tokens/s+12.5 %');
    expect(others[1]).toHaveTextContent('+59.0 points(+55.0 to +63.0 points)KV-aware better');
    await userEvent.click(screen.getByText('All 2 spans, 1 spoiled'));
    expect(screen.getByText('does not count: its caches were not cold')).toBeInTheDocument();
    expect(await violations(container)).toEqual([]);
  });

  it.each([
    [{ phase: 'switching', message: 'waiting for 3 workers' }, /switching: waiting for 3 workers$/],
    [{ phase: 'switching' }, /preparing KV-aware routing with cold caches$/],
    [{ phase: 'warming_up', warming_up: 0, seconds: 20, of: 60 }, /warming up: 20 of at least 60 s$/],
    [
      { phase: 'counting', seconds: 12, of: 60, turns: 1, attempt: 2 },
      /^Span 7, attempt 2: .* counting: 12 of at least 60 s, 1 turn$/,
    ],
    [{ phase: 'storing' }, /waiting until its turns are stored$/],
  ] as const)('says of its span %j what is done', async (change, words) => {
    await showOne(trial({ progress: { ...trial().progress, span: { ...now, ...change } } }));
    expect(screen.getByText(words)).toBeInTheDocument();
  });

  it('is updated by each snapshot', async () => {
    const { booth } = await showOne(trial());
    const progress = { ...trial().progress, seconds_left: 30, span: { ...now, warming_up: 3 } };
    act(() => booth.show({ state: { sweep: { ...summaryOf(trial()), progress } } }));
    expect(screen.getByText(/: 3 of 120 initial conversations/)).toBeInTheDocument();
    expect(screen.getByText(/about 30 s left/)).toBeInTheDocument();
  });

  it('is paused and, after a confirmation, cancelled', async () => {
    const { booth } = await showOne(trial());
    await click(screen.getByRole('button', { name: 'Pause' }));
    expect(booth.writes).toHaveBeenLastCalledWith('PATCH', '/sweeps/t1', { state: 'paused' });
    act(() => booth.show()); // the state that follows
    await click(screen.getByRole('button', { name: 'Cancel' }));
    expect(booth.writes).toHaveBeenCalledTimes(1);
    await click(screen.getByRole('button', { name: 'Cancel it (Enter)' }));
    expect(booth.writes).toHaveBeenLastCalledWith('PATCH', '/sweeps/t1', { state: 'cancelled' });
  });

  it('reports why it is paused, and is resumed', async () => {
    const paused = trial({ state: 'paused', reason: 'by editor, who stopped the workload', cause: 'operator' });
    const { booth } = await show(new Booth([paused]));
    expect(region('In progress').getByText('Paused by editor, who stopped the workload')).toBeInTheDocument();
    expect(region('In progress').getByText('7 spans measured, 1 spoiled.')).toBeInTheDocument();
    await click(newTrial());
    expect(startButton()).toBeEnabled();
    booth.refusal = new Problem(409, 'a sweep is in progress');
    await click(region('In progress').getByRole('button', { name: 'Resume' }));
    expect(booth.writes).toHaveBeenLastCalledWith('PATCH', '/sweeps/t1', { state: 'running' });
    expect(screen.getByText('Resuming failed')).toBeInTheDocument();
  });

  it('reports a failed target as an error to fix', async () => {
    await showOne(trial({ state: 'paused', reason: 'the target failed in a span twice', cause: 'target' }));
    expect(screen.getByText('Paused: the target failed in a span twice')).toBeInTheDocument();
    expect(screen.getByRole('button', { name: 'Resume' })).toBeEnabled();
  });

  it('has every look at the deciding metric, also those before the page was opened', async () => {
    await showOne(trial());
    expect(
      screen.getByRole('img', { name: /^The difference in TTFT p95 and its interval after up to 4/ })
    ).toBeInTheDocument();
  });

  it('reports that it waits for the disk, or will not be decided', async () => {
    const waiting = trial({
      reason: 'waiting for the disk: no space left',
      progress: { ...trial().progress, beyond: true },
    });
    await showOne(waiting);
    expect(screen.getByText('Waiting for the disk: no space left')).toBeInTheDocument();
    expect(screen.getByText(/at this rate it will reach its time limit at \d\d:\d\d undecided/)).toBeInTheDocument();
  });

  it('cannot be controlled by a viewer', async () => {
    await showOne(trial(), { me: viewer });
    expect(screen.queryByRole('button', { name: 'Pause' })).not.toBeInTheDocument();
    expect(screen.getByText(/^Span 7/)).toBeInTheDocument();
  });

  it('shows no old progress and no buttons while the load generator is unreachable', async () => {
    const { booth } = await show(new Booth([trial()]));
    act(() => booth.lose());
    expect(screen.getByText('The load generator does not respond')).toBeInTheDocument();
    expect(screen.queryByText(/^Span 7: KV/)).not.toBeInTheDocument();
    expect(region('In progress').getByRole('button', { name: 'Pause' })).toBeDisabled();
    await click(newTrial());
    expect(startButton()).toBeDisabled();
  });

  it('of a sweep or a capacity search has curves that grow, and what is sustained', async () => {
    const searching = trial({
      request: defaults.capacity,
      trial: undefined,
      progress: { spans: 4, spoiled: 0, seconds_used: 900, seconds_most: 1800 },
      capacity: {
        modes: [
          {
            mode: { mode: 'round_robin', speculation: 'off' },
            level: 96,
            interval: [90, 100],
            isolated: [130],
            tested: [{ concurrency: 60, spans: 2, verdict: 'meets' }],
          },
          { mode: { mode: 'kv', speculation: 'off' }, isolated: [], tested: [] },
        ],
        crossing: { level: 148, interval: [140, 160], below: 'b' },
      },
    });
    await showOne(searching);
    expect(screen.getAllByRole('figure')).toHaveLength(5);
    expect(screen.getByRole('list', { name: 'Lines' })).toHaveTextContent('Round-robin KV-aware');
    expect(screen.getByText('96 (90–100)')).toBeInTheDocument();
    expect(screen.getByText('meets the SLOs at 60; also meets them above the first miss, at 130')).toBeInTheDocument();
    expect(screen.getByText('not known yet')).toBeInTheDocument();
    expect(screen.getByText('148 (140–160)')).toBeInTheDocument();
    expect(screen.getByText('below it, KV-aware has the lower TTFT p95')).toBeInTheDocument();
    expect(screen.getByText(/; it ends by \d\d:\d\d at the latest\.$/)).toBeInTheDocument();
    expect(screen.getByRole('progressbar')).toHaveAttribute('value', '900');
  });

  it('reserves the room of the figures', async () => {
    await showOne(
      trial({
        request: defaults.sweep,
        trial: undefined,
        rows: [],
        spans: [],
        words: [],
        progress: { spans: 0, of: 18, spoiled: 0, seconds_used: 0, seconds_left: 6480 },
      })
    );
    expect(screen.getByText('No valid span yet: figures appear with the first one.')).toBeInTheDocument();
    expect(screen.getByText(/^0 of 18 spans measured; about 1 h 48 min left/)).toBeInTheDocument();
    expect(screen.queryByRole('group', { name: 'Report' })).not.toBeInTheDocument();
  });
});

describe('a result', () => {
  it('has its sentences first, its figures with intervals, and its report in every format', async () => {
    await showOne(done);
    expect(screen.getByRole('group', { name: 'Findings' })).toHaveTextContent(done.words.join(''));
    const [, roundRobin] = within(screen.getByRole('table', { name: /^Figures/ })).getAllByRole('row');
    expect(roundRobin).toHaveTextContent('120Round-robin—725 ✕misses the SLO510–580');
    expect(screen.getByRole('link', { name: 'Open the report' })).toHaveAttribute(
      'href',
      '/api/v1/sweeps/t0/report.html'
    );
    expect(screen.getByRole('link', { name: 'Report as TSV' })).toHaveAttribute('href', '/api/v1/sweeps/t0/report.tsv');
    expect(screen.getByRole('link', { name: /^Per-second data/ })).toHaveAttribute(
      'href',
      '/api/v1/sweeps/t0/seconds.csv'
    );
  });

  it('shows at its field why it cannot become a baseline', async () => {
    const booth = new Booth([done]);
    booth.refusal = new Problem(422, 'name: it is that of a recorded one', 'name');
    await showOne(done, { booth });
    await click(screen.getByRole('button', { name: 'Save as baseline' }));
    await click(screen.getByRole('button', { name: 'Save baseline' }));
    expect(screen.getByText('name: it is that of a recorded one')).toBeInTheDocument();
  });

  it('is deleted after a confirmation', async () => {
    const { booth } = await showOne(done);
    await click(screen.getByRole('button', { name: 'Delete' }));
    expect(booth.writes).not.toHaveBeenCalled();
    await click(within(screen.getByRole('dialog')).getByRole('button', { name: 'Delete (Enter)' }));
    expect(booth.writes).toHaveBeenLastCalledWith('DELETE', '/sweeps/t0', undefined);
  });

  it('reports that it was cancelled, or why it failed', async () => {
    const cancelled = {
      ...done,
      state: 'cancelled',
      reason: 'by editor',
      cause: 'operator',
      words: new Array<string>(),
      trial: undefined,
    } as const;
    const { unmount } = await showOne(cancelled);
    expect(screen.getByText(/^Cancelled by editor\. 8 spans measured/)).toBeInTheDocument();
    unmount();
    await showOne({ ...cancelled, state: 'failed', reason: 'the target died', cause: 'target' });
    expect(screen.getByText('The trial failed')).toBeInTheDocument();
    expect(screen.getByText(/^the target died\./)).toBeInTheDocument();
  });

  it('is chosen from the list, and the address keeps it', async () => {
    const older = {
      ...done,
      id: 's0',
      request: { ...defaults.sweep, title: 'Before the upgrade' },
      trial: undefined,
      words: ['Older.'],
    };
    await show(new Booth([done, older]));
    expect(region('Result').queryByText('Older.')).not.toBeInTheDocument();
    await click(region('All results').getByRole('button', { name: 'Before the upgrade' }));
    await waitFor(() => expect(region('Result').getByText('Older.')).toBeInTheDocument());
    expect(screen.getByLabelText('Address')).toHaveTextContent('?show=s0');
  });

  it('has no buttons that change anything for a viewer', async () => {
    await showOne(done, { me: viewer });
    expect(screen.getByRole('link', { name: 'Open the report' })).toBeInTheDocument();
    expect(screen.queryByRole('button', { name: /Delete|baseline/ })).not.toBeInTheDocument();
  });

  it('shows how its spans began and ended', async () => {
    await showOne({ ...done, spans: [span(0, { cold: 'nonce', failed: 2 })] });
    const table = screen.getByRole('table', { name: /^Spans/, hidden: true });
    const [, row] = within(table).getAllByRole('row', { hidden: true });
    expect(row).toHaveTextContent(/^1Round-robin120.*4122.*own texts77.*counts$/);
  });
});

describe('two results', () => {
  it('that the address names are compared by a report', async () => {
    await show(new Booth(), { path: '/benchmarks?a=h200%20round_robin%20off&b=h200%20kv%20off' });
    expect(screen.getByRole('link', { name: 'Open the comparison' })).toHaveAttribute(
      'href',
      '/api/v1/report.html?a=h200&a_mode=round_robin&a_speculation=off&b=h200&b_mode=kv&b_speculation=off'
    );
  });

  it('are compared at the levels that the documents print, where asked for', async () => {
    await show(new Booth(), { path: '/benchmarks?a=h200%20round_robin%20off&b=h200%20kv%20off' });
    await userEvent.click(screen.getByRole('checkbox', { name: /^Only the levels that the documents print/ }));
    expect(screen.getByRole('link', { name: 'Open the comparison' }).getAttribute('href')).toMatch(/&levels=60%2C80$/);
  });

  it('require two different selections', async () => {
    await show(new Booth(), { path: '/benchmarks?a=h200%20kv%20off&b=h200%20kv%20off' });
    expect(screen.getByText(/^Choose two different results/)).toBeInTheDocument();
    expect(screen.queryByRole('link', { name: 'Open the comparison' })).not.toBeInTheDocument();
  });
});

it('reports that nothing is known without an answer', async () => {
  const booth = new Booth();
  booth.offered = new Problem(503, 'The load generator is starting.');
  await show(booth);
  expect(screen.getByText('The results could not be loaded')).toBeInTheDocument();
  expect(screen.getByText('The load generator is starting.')).toBeInTheDocument();
});
