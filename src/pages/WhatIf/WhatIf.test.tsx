import { act, fireEvent, screen, within } from '@testing-library/react';

import { Problem, type SimulationList, type SimulationResult } from '../../client';
import { violations } from '../../test/axe';
import { FakeClient, viewer } from '../../test/fixtures';
import { address, renderWith } from '../../test/render';
import { stubSizes } from '../../test/sizes';
import { defaults, done, list, simulation } from './fixtures';
import { LOOK_EVERY, DEBOUNCE, RETRY_EVERY, SUSPENDED_AFTER } from './useSimulation';
import WhatIf from '.';

beforeEach(() => {
  stubSizes();
  jest.useFakeTimers();
});
afterEach(() => {
  jest.useRealTimers();
  jest.restoreAllMocks();
});

/** A load generator whose simulation has the progress that the test sets. */
class Booth extends FakeClient {
  offered: SimulationList = list;
  answer: SimulationResult | Problem = simulation();
  asked: SimulationResult | Problem | undefined;

  constructor() {
    super();
    this.reads.mockImplementation((path) => {
      if (path === '/baselines') {
        return Promise.resolve({ baselines: [] });
      }
      return path === '/simulations' ? Promise.resolve(this.offered) : give(this.answer);
    });
    this.writes.mockImplementation((method) => give(method === 'POST' ? (this.asked ?? this.answer) : done));
  }

  /** The requested simulations. */
  get questions() {
    return this.writes.mock.calls.filter(([method]) => method === 'POST').map(([, , body]) => body);
  }

  get cancelled() {
    return this.writes.mock.calls.filter(([method]) => method === 'DELETE').map(([, path]) => path);
  }
}

const give = (answer: SimulationResult | Problem) =>
  answer instanceof Problem ? Promise.reject(answer) : Promise.resolve(answer);

const wait = (ms: number) => act(() => jest.advanceTimersByTimeAsync(ms));

const click = async (element: HTMLElement) => {
  fireEvent.click(element);
  await wait(0);
};

async function show(booth = new Booth(), at = '/what-if') {
  const result = renderWith(booth, <WhatIf />, at);
  act(() => booth.show());
  await wait(0);
  await wait(DEBOUNCE);
  return { booth, ...result };
}

const region = (name: string) => within(screen.getByRole('region', { name }));

describe('the answer', () => {
  it('to the first preset is computed automatically, and grows', async () => {
    const { booth } = await show();
    expect(booth.questions).toEqual([defaults]);
    expect(screen.getByText('Computing: 8 of 12 runs, about 4 s left.')).toBeInTheDocument();
    expect(screen.getByRole('figure', { name: 'TTFT p95, ms simulated' })).toBeInTheDocument();
    expect(screen.getByText('The explanation appears once all runs are done.')).toBeInTheDocument();
    booth.answer = done;
    await wait(LOOK_EVERY);
    expect(screen.getByText('12 runs computed.')).toBeInTheDocument();
    expect(screen.getByText('KV-aware routing herds from 100 on.')).toBeInTheDocument();
    expect(screen.getByRole('group', { name: 'Levels within the SLO' })).toHaveTextContent(
      'TTFT p95 ≤ 600 ms up to a concurrency of:Round-robin no level, KV-aware 80 simulated'
    );
    const parts = within(screen.getByRole('table', { name: 'Mean times of a turn, simulated' })).getAllByRole('row');
    expect(parts).toHaveLength(5);
    expect(parts[1]).toHaveTextContent('60Round-robin244 msqueue 81.3 ms · prefill 163 ms20.2 squeue 0.1 s');
    expect(parts[4]).toHaveTextContent('KV-aware1,125 msqueue 375 ms · prefill 750 ms21.1 s');
    const reads = booth.reads.mock.calls.length;
    await wait(5 * LOOK_EVERY);
    expect(booth.reads.mock.calls.length).toBe(reads);
    expect(booth.cancelled).toEqual([]);
  });

  it('is a table on request, which the address keeps', async () => {
    const { container } = await show();
    await click(screen.getByRole('radio', { name: 'Table' }));
    expect(address()).toBe('/what-if?view=table');
    const rows = within(screen.getByRole('table', { name: 'The simulated figures, level by level' })).getAllByRole(
      'row'
    );
    expect(within(rows[2]).getAllByRole('cell')[0]).toHaveTextContent('650 ✕misses the SLO 585–715');
    expect(within(rows[4]).getAllByRole('cell')[0]).toHaveTextContent('—');
    jest.useRealTimers();
    expect(await violations(container)).toEqual([]);
  });

  it('that is stored is not computed again', async () => {
    const booth = new Booth();
    const { id, by, asked, request } = done;
    booth.offered = { ...list, simulations: [{ id, by, asked, request, state: 'done', done: 12, of: 12 }] };
    booth.answer = done;
    await show(booth);
    expect(screen.getByText('12 runs computed.')).toBeInTheDocument();
    expect(booth.questions).toEqual([]);
  });
});

describe('a change', () => {
  it('replaces the computation after a pause, and keeps the earlier curves, marked as such', async () => {
    const { booth } = await show();
    booth.asked = simulation({ id: '8', points: [], progress: { state: 'queued', ahead: 1, done: 0, of: 12 } });
    booth.answer = booth.asked;
    fireEvent.change(screen.getByRole('slider', { name: 'Workers by slider' }), { target: { value: '5' } });
    await wait(0);
    expect(booth.cancelled).toEqual(['/simulations/7']);
    expect(booth.questions).toHaveLength(1);
    expect(screen.getByText('The figures below are from the previous question.')).toBeInTheDocument();
    await wait(DEBOUNCE);
    expect(booth.questions[1]).toEqual({ ...defaults, workers: 6 });
    expect(screen.getByText('Queued: 1 simulation ahead.')).toBeInTheDocument();
    expect(screen.queryByRole('region', { name: 'Why the modes cross' })).not.toBeInTheDocument();
    booth.answer = { ...done, id: '8' };
    await wait(LOOK_EVERY);
    expect(screen.queryByText(/the previous question/)).not.toBeInTheDocument();
    expect(address()).toBe('/what-if?workers=6');
  });

  it('is marked, and reset one by one or as a whole', async () => {
    const { booth } = await show(new Booth(), '/what-if?workers=6&router-track-output-blocks=true');
    expect(booth.questions).toEqual([{ ...defaults, workers: 6, router_track_output_blocks: true }]);
    expect(screen.getByText('2 settings differ from the preset.')).toBeInTheDocument();
    await click(screen.getByRole('button', { name: 'Reset Workers to 3' }));
    expect(address()).toBe('/what-if?router-track-output-blocks=true');
    await click(screen.getByRole('button', { name: 'Reset all' }));
    expect(address()).toBe('/what-if');
    expect(screen.getByRole('checkbox', { name: /^Count the blocks of answers in progress/ })).not.toBeChecked();
  });

  it('that is invalid is reported at its field, and nothing is requested', async () => {
    const { booth } = await show();
    const workers = screen.getByRole('textbox', { name: 'Workers' });
    fireEvent.change(workers, { target: { value: '900' } });
    fireEvent.keyDown(workers, { key: 'Enter' });
    await wait(0);
    expect(screen.getByText('A whole number from 1 to 256')).toBeInTheDocument();
    await wait(DEBOUNCE);
    expect(booth.questions).toHaveLength(1);
    expect(screen.getByText(/^Not computed: correct the settings/)).toBeInTheDocument();
  });
});

describe('an incomplete answer', () => {
  it('is cancelled by leaving the page, or by a button, which keeps the results so far', async () => {
    const { booth, unmount } = await show();
    await click(screen.getByRole('button', { name: 'Cancel' }));
    expect(screen.getByText(/^Cancelled. The curves cover 8 of 12 runs./)).toBeInTheDocument();
    await wait(0);
    expect(booth.cancelled).toEqual(['/simulations/7']);
    await click(screen.getByRole('button', { name: 'Compute again' }));
    await wait(DEBOUNCE);
    expect(booth.questions).toHaveLength(2);
    unmount();
    await wait(0);
    expect(booth.cancelled).toHaveLength(2);
  });

  it('shows the load generator’s refusal at its field', async () => {
    const booth = new Booth();
    booth.asked = new Problem(422, 'kv_tokens: 400000 does not fit', 'kv_tokens', 'up to 300000');
    await show(booth);
    expect(region('Simulated').getByText('kv_tokens: 400000 does not fit')).toBeInTheDocument();
    expect(region('Settings').getByText('kv_tokens: 400000 does not fit')).toBeInTheDocument();
    booth.asked = undefined;
    await click(screen.getByRole('button', { name: 'Try again' }));
    await wait(DEBOUNCE);
    expect(screen.getByText(/^Computing: 8 of 12/)).toBeInTheDocument();
  });

  it('is not offered to viewers', async () => {
    const booth = new Booth();
    booth.who.mockResolvedValue(viewer);
    await show(booth);
    expect(booth.questions).toEqual([]);
    expect(screen.getByText('You cannot start simulations')).toBeInTheDocument();
    expect(screen.queryByRole('button', { name: 'Try again' })).not.toBeInTheDocument();
  });

  it('continues after a loss, or is requested again where the load generator lost it', async () => {
    const { booth } = await show();
    booth.answer = new Problem(502, 'The load generator does not respond.');
    await wait(LOOK_EVERY);
    expect(screen.getByText('The load generator does not respond')).toBeInTheDocument();
    booth.answer = new Problem(404, 'no such simulation');
    booth.asked = simulation({ id: '9' });
    await wait(RETRY_EVERY);
    expect(booth.questions).toHaveLength(2);
    expect(screen.getByText(/^Computing: 8 of 12/)).toBeInTheDocument();
  });

  it('that expired while the page was suspended is requested again, but not one that was cancelled', async () => {
    const { booth } = await show();
    booth.answer = simulation({ progress: { state: 'cancelled', ahead: 0, done: 8, of: 12 }, error: 'not requested' });
    booth.asked = simulation({ id: '9' });
    jest.setSystemTime(Date.now() + 2 * SUSPENDED_AFTER);
    await wait(LOOK_EVERY);
    expect(booth.questions).toHaveLength(2);
    await wait(LOOK_EVERY);
    expect(booth.questions).toHaveLength(2);
    expect(screen.getByText(/^Cancelled: not requested/)).toBeInTheDocument();
  });

  it('cannot be requested where simulations are off or not reported', async () => {
    const booth = new Booth();
    booth.offered = { ...list, available: false, message: 'Turned off by whatif.enabled.' };
    const { unmount } = await show(booth);
    expect(screen.getByText('Turned off by whatif.enabled.')).toBeInTheDocument();
    unmount();
    booth.reads.mockRejectedValue(new Problem(0, 'No answer.'));
    await show(booth);
    expect(screen.getByText('The simulation options could not be loaded')).toBeInTheDocument();
  });
});
