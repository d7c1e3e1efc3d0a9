import { act, fireEvent, screen, waitFor, within } from '@testing-library/react';
import userEvent from '@testing-library/user-event';

import { Problem, type ModeChange } from '../../client';
import { violations } from '../../test/axe';
import {
  clientError,
  FakeClient,
  laneSnapshot,
  settings,
  state,
  sweepSummary,
  viewer,
  type LaneChange,
} from '../../test/fixtures';
import { renderWith, texts } from '../../test/render';
import { answered } from '../../test/settled';
import { stubSizes } from '../../test/sizes';
import { Controls } from './Controls';
import { FOLLOW_UP } from './useAction';
import { DEBOUNCE, SETTLE } from './useConcurrency';

// The age of snapshots is mocked, because its clock ticks.
jest.mock('../../lib/useNow', () => ({ useNow: () => Date.now(), useAge: () => 0 }));

beforeEach(() => stubSizes()); // which a combobox needs
afterEach(() => jest.restoreAllMocks());

const stopped: LaneChange = { state: { running: false, phase: 'stopped', concurrency: { target: 120, actual: 0 } } };

const change: ModeChange = {
  from: { mode: 'kv', speculation: 'off' },
  to: { mode: 'round_robin', speculation: 'off' },
  phase: 'switching',
  message: 'waiting for 3 workers',
  started: '2026-11-20T09:59:48Z', // 12 s before the snapshot
  failed: false,
};

const held = (by: 'target_rps' | 'start_rate'): LaneChange => ({
  state: {
    concurrency: { target: 1000, actual: 262 },
    step: {
      id: 3,
      started: '2026-11-20T09:50:00Z',
      settled: '2026-11-20T09:51:20Z',
      held: { by, at: 260 },
      counted: 4,
    },
  },
});

async function show(client: FakeClient) {
  const result = renderWith(client, <Controls lane="main" />);
  await answered(); // the user is known
  return result;
}

async function showLane(lane: LaneChange = {}) {
  const client = new FakeClient();
  client.show(lane);
  return show(client);
}

const button = (name: string) => screen.getByRole('button', { name });
/** Confirms an action, where it requires it. */
const confirm = async () => {
  const answer = screen.queryByRole('button', { name: /\(Enter\)$/ });
  if (answer) {
    await userEvent.click(answer);
    await answered();
  }
};
const slider = () => screen.getByRole('slider', { name: 'Concurrency' });
const numberField = () => screen.getByRole('spinbutton', { name: 'Concurrency as a number' });

const figures = () => screen.getAllByRole('term').map((term) => `${term.textContent} ${term.nextSibling?.textContent}`);

/** An answer that the test resolves. */
function pending() {
  let answer!: (value: unknown) => void;
  const promise = new Promise<unknown>((resolve) => (answer = resolve));
  return { promise, answer: () => answer({}) };
}

describe('the user', () => {
  it('has no controls as a viewer, but the same figures', async () => {
    const client = new FakeClient();
    client.who.mockResolvedValue(viewer);
    const step = { ...state().step, caches: 'kept' as const };
    client.show({ state: { concurrency: { target: 120, actual: 119 }, step } });
    await show(client);
    expect(screen.queryByRole('button')).not.toBeInTheDocument();
    expect(screen.queryByRole('slider')).not.toBeInTheDocument();
    expect(screen.getByText('Running')).toBeInTheDocument();
    expect(figures()).toEqual([
      'Target 120',
      'Actual 119',
      'Routing KV-aware, caches kept',
      'Speculation Off',
      'Waiting for first token 3, for up to 0.4 s',
      'Turns 3–5',
      'Opening texts 10',
      'Opening length 3,500–4,000 tokens',
      'Longest answer 1,024 tokens',
      'Start rate 10 conversations/s',
      'Request cap 25 requests/s',
    ]);
    act(() => client.show({ state: { phase: 'switching', mode_change: change } }));
    expect(screen.getByText('KV-aware → Round-robin: Switching')).toBeInTheDocument();
    expect(screen.queryByRole('button')).not.toBeInTheDocument();
  });

  it('has at a rate how late turns are sent, and what was dropped', async () => {
    const client = new FakeClient();
    client.who.mockResolvedValue(viewer);
    client.show({
      state: { concurrency: { target: '12/s', actual: 84, dropped: 1200 } },
      window: { ...laneSnapshot().window, late: { n: 700, p50: 0.0007, p99: 0.0018, above: 0 } },
    });
    await show(client);
    expect(figures()).toEqual(
      expect.arrayContaining([
        'Target 12/s',
        'Sent late by 0.7 ms (p99 1.8 ms, 0.0 % above 50 ms)',
        'Dropped 1,200',
        'Most turns in flight up to 1,000',
      ])
    );
    expect(figures().join()).not.toContain('Start rate');
  });

  it('has a warning of a queue that grows without end', async () => {
    const client = new FakeClient();
    client.who.mockResolvedValue(viewer);
    client.show({ state: { concurrency: { target: '12/s', actual: 840, grows: true } } });
    await show(client);
    expect(screen.getByText(/840 in progress at 12 conversations\/s/)).toBeInTheDocument();
    act(() => client.lose());
    expect(screen.queryByText('The queue grows without end')).not.toBeInTheDocument();
  });

  it('has the settings of the workload only in the form as an operator', async () => {
    await showLane();
    const names = texts(screen.getAllByRole('term'));
    expect(names).toEqual(['Target', 'Actual', 'Routing', 'Speculation', 'Waiting for first token']);
  });

  it('has a line on the size of the load generator’s own error', async () => {
    const client = new FakeClient();
    client.show({}, { client: clientError('client_bottleneck', { reason: 'ITL cannot be judged' }) });
    await show(client);
    expect(screen.getByText(/^Load generator error too large: /)).toHaveAttribute('title', 'ITL cannot be judged');
    expect(screen.queryByRole('alert')).not.toBeInTheDocument(); // it is shown where figures are compared
  });

  it('has no controls while unknown', async () => {
    const client = new FakeClient();
    client.who.mockReturnValue(new Promise(() => undefined));
    client.show();
    await show(client);
    expect(screen.queryByRole('button')).not.toBeInTheDocument();
  });
});

describe('the buttons', () => {
  it.each([
    ['stopped', stopped, ['Start']],
    ['running', {}, ['Stop', 'Drain', 'Measure anew']],
    ['draining', { state: { phase: 'draining' as const } }, ['Stop']],
    ['switching', { state: { phase: 'switching' as const, mode_change: change } }, ['Stop']],
  ])('make sense while %s', async (_, lane, enabled) => {
    await showLane(lane);
    const found = ['Start', 'Stop', 'Drain', 'Measure anew'].filter((name) => !button(name).hasAttribute('disabled'));
    expect(found).toEqual(enabled);
  });

  it.each([
    ['loading', (client: FakeClient) => client.states.next({ status: 'loading' })],
    ['lost', (client: FakeClient) => client.lose()],
  ])('are disabled while %s', async (_, happen) => {
    const { client } = await showLane(stopped);
    act(() => happen(client));
    ['Start', 'Stop', 'Drain'].forEach((name) => expect(button(name)).toBeDisabled());
  });

  it.each([
    ['Start', stopped, 'POST', '/workload/start?lane=main', { concurrency: undefined }],
    ['Stop', {}, 'POST', '/workload/stop?lane=main', { drain: false }],
    ['Drain', {}, 'POST', '/workload/stop?lane=main', { drain: true }],
  ])('%s by keyboard', async (name, lane, method, path, body) => {
    const { client } = await showLane(lane);
    button(name).focus();
    await userEvent.keyboard('{Enter}');
    if (name === 'Stop') {
      expect(client.writes).not.toHaveBeenCalled();
      expect(screen.getByText(/^120 conversations end in the middle of their turns/)).toBeInTheDocument();
      await userEvent.keyboard('{Enter}');
      await answered();
    }
    expect(client.writes).toHaveBeenCalledWith(method, path, body);
  });

  it('are busy until a snapshot follows the answer, or none comes for a while', async () => {
    jest.useFakeTimers();
    const pass = (ms: number) => act(() => jest.advanceTimersByTimeAsync(ms));
    const { client } = await showLane(stopped);
    const answer = pending();
    client.writes.mockReturnValueOnce(answer.promise);
    fireEvent.click(button('Start'));
    await pass(0);
    expect(button('Start')).toHaveAttribute('aria-busy', 'true');
    act(() => client.show(stopped)); // older than the answer
    await act(async () => answer.answer());
    expect(button('Start')).toHaveAttribute('aria-busy', 'true');
    expect(button('Start')).toBeDisabled();
    await pass(2);
    act(() => client.show());
    expect(button('Start')).toHaveAttribute('aria-busy', 'false');
    expect(button('Stop')).toBeEnabled();
    act(() => client.show(stopped));
    fireEvent.click(button('Start'));
    await pass(FOLLOW_UP - 1);
    expect(button('Start')).toBeDisabled();
    await pass(1);
    expect(button('Start')).toBeEnabled();
    jest.useRealTimers();
  });

  it('report a failure, until it is dismissed', async () => {
    const { client } = await showLane(stopped);
    client.writes.mockRejectedValue(new Problem(409, 'The workload is draining; start it when it has stopped.'));
    await userEvent.click(button('Start'));
    expect(screen.getByRole('alert')).toHaveTextContent(/The workload was not started.*start it when it has stopped/);
    expect(button('Start')).toBeEnabled();
    await userEvent.click(button('Close alert'));
    expect(screen.queryByRole('alert')).not.toBeInTheDocument();
  });

  it.each<[string, LaneChange, string]>([
    ['Stop', {}, 'The workload was not stopped'],
    ['Drain', {}, 'The workload was not drained'],
    ['Round-robin', {}, 'The mode was not changed'],
    ['Cancel the change', { state: { phase: 'switching', mode_change: change } }, 'The mode change was not cancelled'],
    ['One each', {}, 'The workload was not changed'],
  ])('say what “%s” did not do', async (name, lane, title) => {
    const { client } = await showLane(lane);
    client.writes.mockRejectedValue(new Problem(502, 'connection refused'));
    await userEvent.click(button(name));
    await confirm();
    expect(screen.getByRole('alert')).toHaveTextContent(new RegExp(`^${title}.*connection refused`));
  });
});

describe('concurrency', () => {
  beforeEach(() => jest.useFakeTimers());
  afterEach(() => jest.useRealTimers());

  const slide = (value: number) => fireEvent.change(slider(), { target: { value } });
  const pass = (ms: number) => act(() => jest.advanceTimersByTimeAsync(ms));

  const range = () => ['min', 'max', 'step'].map((name) => slider().getAttribute(name));

  it('has the range of the settings, also when they change, and announces its value', async () => {
    const { client } = await showLane();
    expect(range()).toEqual(['60', '180', '10']);
    expect(slider()).toHaveAttribute('aria-valuetext', '120 conversations');
    act(() => client.show({}, { settings: settings({ slider: { min: 10, max: 300, increment: 5 } }) }));
    expect(range()).toEqual(['10', '300', '5']);
  });

  it('extends to the value in force, and keeps its range while it is operated', async () => {
    const concurrency = { target: 20, actual: 20 };
    const { client } = await showLane({ state: { concurrency } });
    expect(slider()).toHaveValue('20');
    expect(range()).toEqual(['20', '180', '10']);
    fireEvent.focus(slider());
    slide(100);
    expect(slider()).toHaveValue('100');
    act(() => client.show({ state: { concurrency: { target: 100, actual: 100 } } }));
    expect(slider()).toHaveAttribute('min', '20');
    fireEvent.blur(slider());
    expect(slider()).toHaveAttribute('min', '60');
    act(() => client.show({ state: { concurrency: { target: 127, actual: 127 } } }));
    await waitFor(() => expect(slider()).toHaveValue('127')); // between two levels, and not at the next one
  });

  it('is sent once the slider rests, and once only', async () => {
    const { client } = await showLane();
    slide(130);
    await pass(DEBOUNCE - 1);
    slide(150);
    await pass(DEBOUNCE - 1);
    expect(client.writes).not.toHaveBeenCalled();
    await pass(1);
    expect(client.writes.mock.calls).toEqual([['PATCH', '/workload?lane=main', { concurrency: 150 }]]);
    expect(slider()).toHaveValue('150'); // though the snapshot still says 120
    act(() => client.show({ state: { concurrency: { target: 150, actual: 121 } } }));
    await pass(SETTLE);
    expect(slider()).toHaveValue('150');
  });

  it('is sent at once with Enter', async () => {
    const { client } = await showLane();
    slide(130);
    fireEvent.keyDown(slider(), { key: 'Enter' });
    await pass(0);
    expect(client.writes).toHaveBeenCalledTimes(1);
    await pass(10 * DEBOUNCE);
    expect(client.writes).toHaveBeenCalledTimes(1);
  });

  it('returns to the value in force after a refusal', async () => {
    const { client } = await showLane();
    client.writes.mockRejectedValue(new Problem(422, 'concurrency: 150 is not allowed', 'concurrency', '1 to 140'));
    slide(150);
    await pass(DEBOUNCE);
    expect(slider()).toHaveValue('120');
    expect(screen.getByRole('alert')).toHaveTextContent('concurrency: 150 is not allowed');
  });

  it('follows a change by another user', async () => {
    const { client } = await showLane();
    act(() => client.show({ state: { concurrency: { target: 80, actual: 100 } } }));
    expect(slider()).toHaveValue('80');
    expect(numberField()).toHaveValue(80);
  });

  it('is applied after typing where it is allowed, and may lie off the slider', async () => {
    const user = userEvent.setup({ advanceTimers: jest.advanceTimersByTime });
    const { client } = await showLane();
    await user.clear(numberField());
    await user.type(numberField(), '5000{Enter}');
    expect(screen.getByText('A whole number from 1 to 1000')).toBeInTheDocument();
    await user.tab();
    expect(numberField()).toHaveValue(120);
    await user.clear(numberField());
    await user.type(numberField(), '25');
    await pass(10 * DEBOUNCE);
    expect(client.writes).not.toHaveBeenCalled();
    await user.keyboard('{Enter}');
    expect(client.writes.mock.calls).toEqual([['PATCH', '/workload?lane=main', { concurrency: 25 }]]);
  });

  it('steps with the arrows of the number field', async () => {
    const { client } = await showLane();
    fireEvent.change(numberField(), { target: { value: '130' } }); // no input type, as with the arrows
    await pass(DEBOUNCE);
    expect(client.writes).toHaveBeenCalledWith('PATCH', '/workload?lane=main', { concurrency: 130 });
  });
});

describe('rate', () => {
  const atRate: LaneChange = { state: { concurrency: { target: '12/s', actual: 84 } } };
  const position = (name: string) => screen.getByRole('radio', { name });
  const rate = () => screen.getByRole('slider', { name: 'Rate' });
  const pass = (ms: number) => act(() => jest.advanceTimersByTimeAsync(ms));
  const sent = (client: FakeClient) => client.writes.mock.calls.map(([, , body]) => body);

  beforeEach(() => jest.useFakeTimers());
  afterEach(() => jest.useRealTimers());

  it('is the position of the control at once where the workload has one', async () => {
    await showLane(atRate);
    expect(position('Rate')).toBeChecked();
    expect(rate()).toHaveValue('12');
    expect(rate()).toHaveAttribute('aria-valuetext', '12 conversations/s');
    expect(['min', 'max', 'step'].map((name) => rate().getAttribute(name))).toEqual(['0.5', '50', '0.5']);
    expect(screen.getByText('12 conversations/s · 84 in progress')).toBeInTheDocument();
    expect(figures()).toEqual(expect.arrayContaining(['Target 12/s', 'Actual 84']));
    expect(screen.queryByRole('slider', { name: 'Concurrency' })).not.toBeInTheDocument();
  });

  it('is sent with its unit, by the slider and as a number', async () => {
    const { client } = await showLane(atRate);
    fireEvent.change(rate(), { target: { value: 14.5 } });
    await pass(DEBOUNCE);
    const field = screen.getByRole('spinbutton', { name: 'Rate as a number' });
    fireEvent.change(field, { target: { value: '0.3' } });
    await pass(DEBOUNCE);
    fireEvent.change(field, { target: { value: '0' } });
    await pass(DEBOUNCE);
    expect(sent(client)).toEqual([{ concurrency: '14.5/s' }, { concurrency: '0.3/s' }]);
    expect(screen.getByText('A number from 0.01 to 10000')).toBeInTheDocument();
  });

  it('keeps the last value of each position', async () => {
    const { client } = await showLane(atRate);
    act(() => client.show({ state: { concurrency: { target: 130, actual: 84 } } }));
    fireEvent.click(position('Rate'));
    await pass(DEBOUNCE);
    act(() => client.show(atRate));
    fireEvent.click(position('Conversations'));
    expect(position('Conversations')).toBeChecked();
    expect(slider()).toHaveValue('130');
    await pass(DEBOUNCE);
    expect(sent(client)).toEqual([{ concurrency: '12/s' }, { concurrency: 130 }]);
  });

  it('reports a cap beside what is in progress', async () => {
    await showLane({ state: { concurrency: { target: '12/s', actual: 84, limited_by: 'target_rps' } } });
    expect(screen.getByText(/^Slowed by .*: 84 in progress at 12 conversations\/s$/)).toBeInTheDocument();
  });
});

describe('mode and speculation', () => {
  const group = (name: string) => within(screen.getByRole('group', { name }));

  it('are the driver’s', async () => {
    await showLane();
    const names = (label: string) => texts(group(label).getAllByRole('button'));
    expect(names('Routing')).toEqual(['Round-robin', 'KV-aware']);
    expect(names('Speculation')).toEqual(['Off', 'EAGLE-3']);
    expect(group('Routing').getByRole('button', { pressed: true })).toHaveTextContent('KV-aware');
  });

  it('request a mode with its speculation', async () => {
    const { client } = await showLane({ state: { speculation: 'eagle3' } });
    await userEvent.click(button('Round-robin'));
    expect(client.writes).not.toHaveBeenCalled();
    await confirm();
    expect(client.writes).toHaveBeenCalledWith('PUT', '/cluster/mode?lane=main', {
      mode: 'round_robin',
      speculation: 'off',
    });
  });

  it('request a speculation in the mode in force, and nothing that is in force', async () => {
    const { client } = await showLane();
    await userEvent.click(button('KV-aware'));
    expect(client.writes).not.toHaveBeenCalled();
    await userEvent.click(button('EAGLE-3'));
    await confirm();
    expect(client.writes).toHaveBeenCalledWith('PUT', '/cluster/mode?lane=main', { mode: 'kv', speculation: 'eagle3' });
  });

  it('require no confirmation while the workload is stopped', async () => {
    const { client } = await showLane(stopped);
    await userEvent.click(button('Round-robin'));
    expect(client.writes).toHaveBeenCalledTimes(1);
  });

  it('explain why there is no choice', async () => {
    await showLane({ state: { driver: 'pinned', modes: [{ mode: 'kv', speculation: 'off' }] } });
    expect(button('KV-aware')).toBeDisabled();
    expect(screen.getByRole('group', { name: 'Routing' })).toHaveAccessibleDescription(
      'The driver “pinned” offers only “KV-aware”.'
    );
  });

  it('report that the cluster has not reported its modes', async () => {
    await showLane({ state: { modes: [] } });
    expect(screen.getAllByText('The cluster has not reported its modes yet. Is it running?')).not.toHaveLength(0);
  });

  it('cannot be chosen while they change; the change can be cancelled', async () => {
    const { client } = await showLane({ state: { phase: 'switching', mode_change: change } });
    expect(screen.queryByRole('button', { name: 'Round-robin' })).not.toBeInTheDocument();
    expect(screen.getByText('KV-aware → Round-robin: Switching')).toBeInTheDocument();
    expect(screen.getByText(/waiting for 3 workers/)).toHaveTextContent('12 s');
    expect(screen.queryByRole('button', { name: 'Confirm: done' })).not.toBeInTheDocument();
    await userEvent.click(button('Cancel the change'));
    expect(client.writes).toHaveBeenCalledWith('DELETE', '/cluster/mode?lane=main', undefined);
  });

  it('wait for the operator’s confirmation of a manual switch', async () => {
    const waiting = { ...change, phase: 'waiting_for_operator', message: 'Set DYN_ROUTER_MODE and restart' };
    const { client } = await showLane({ state: { driver: 'manual', phase: 'switching', mode_change: waiting } });
    await userEvent.click(button('Confirm: done'));
    expect(client.writes).toHaveBeenCalledWith('PUT', '/cluster/mode?lane=main', { ...change.to, confirm: true });
  });

  it('report a roll-back and a failure', async () => {
    const { client } = await showLane({
      state: { phase: 'switching', mode_change: { ...change, phase: 'rolling_back' } },
    });
    expect(screen.getByText('KV-aware → Round-robin: Rolling back')).toBeInTheDocument();
    act(() =>
      client.show({
        state: {
          mode_change: { ...change, phase: 'failed', failed: true, message: 'still in KV-aware: no worker came up' },
        },
      })
    );
    expect(screen.getByRole('alert')).toHaveTextContent(
      /The change to Round-robin failed.*Still in KV-aware: no worker came up/
    );
    expect(button('Round-robin')).toBeEnabled();
  });
});

describe('opening texts', () => {
  const group = () => screen.getByRole('group', { name: 'Opening texts' });

  it.each([
    [10, '10', /one of 10 texts, which every worker soon has/],
    [1, '1', /one of one text/],
    [1000, '1,000', /turn 1 hits only if the chosen worker still has that text/],
    [0, 'One each', /its own text: turn 1 is prefilled in full/],
  ])('are shown with what they do: %d', async (openings, name, effect) => {
    await showLane({ state: { shape: { turns: { min: 3, max: 5 }, max_tokens: 1024, openings } } });
    expect(within(group()).getByRole('button', { pressed: true })).toHaveAccessibleName(name);
    expect(group()).toHaveAccessibleDescription(effect);
  });

  it('are not changed to those in force', async () => {
    const { client } = await showLane();
    await userEvent.click(within(group()).getByRole('button', { name: '10' }));
    expect(client.writes).not.toHaveBeenCalled();
  });
});

describe('a load that is held back', () => {
  it.each([
    ['target_rps', /^Held at 260 of 1,000 conversations by the cap of 25 requests\/s/, 'Request cap (0 = none)'],
    ['start_rate', /^Held at 260 of 1,000 conversations by the start rate of 10 conversations\/s/, 'Start rate'],
  ] as const)('says so, with the control of %s', async (by, title, name) => {
    const { client } = await showLane(held(by));
    const notice = screen.getByRole('status', { name: title });
    expect(notice).toHaveTextContent('stored at concurrency 260');
    const field = within(notice).getByRole('textbox');
    expect(field).toHaveAccessibleName(name);
    await userEvent.clear(field);
    await userEvent.type(field, '99{Enter}');
    expect(client.writes).toHaveBeenCalledWith('PATCH', '/workload?lane=main', { [by]: 99 });
    await answered();
  });

  it('is reported to a viewer without a control', async () => {
    const client = new FakeClient();
    client.who.mockResolvedValue(viewer);
    client.show(held('target_rps'));
    await show(client);
    expect(screen.getByText(/^Held at 260 of 1,000 conversations by the cap/)).toBeInTheDocument();
    expect(screen.queryByRole('textbox')).not.toBeInTheDocument();
  });

  it('reports the limit before it stops the ramp, but not the start', async () => {
    const starting = (limited_by: 'target_rps' | 'start_rate'): LaneChange => ({
      state: {
        concurrency: { target: 1000, actual: 255, limited_by },
        step: { id: 3, started: '2026-11-20T09:50:00Z', settled: undefined, counted: 0 },
      },
    });
    const { client } = await showLane(starting('target_rps'));
    expect(
      screen.getByText('Slowed by the cap of 25 requests/s: 255 of 1,000 conversations in progress')
    ).toBeInTheDocument();
    act(() => client.show(starting('start_rate')));
    expect(screen.queryByText(/^Slowed by/)).not.toBeInTheDocument();
    expect(screen.getByText('255 of 1,000 conversations, at least 75 s to go')).toBeInTheDocument();
  });
});

describe('the settings of the traffic', () => {
  const open = () => userEvent.click(button('Traffic'));
  const field = (name: string) => screen.getByRole('textbox', { name });
  const enter = async (name: string, value: string) => {
    await userEvent.clear(field(name));
    await userEvent.type(field(name), value);
  };

  it('are hidden until they are opened', async () => {
    await showLane();
    expect(button('Traffic')).toHaveAttribute('aria-expanded', 'false');
    expect(screen.queryByRole('textbox', { name: 'Start rate' })).not.toBeInTheDocument();
    await open();
    expect(button('Traffic')).toHaveAttribute('aria-expanded', 'true');
    expect(field('Start rate')).toHaveValue('10');
    expect(button('Apply')).toBeDisabled();
  });

  it('send what has changed', async () => {
    const { client } = await showLane();
    await open();
    await enter('Maximum turns', '8');
    await enter('Request cap (0 = none)', '0');
    await userEvent.keyboard('{Enter}');
    expect(client.writes).toHaveBeenCalledWith('PATCH', '/workload?lane=main', {
      turns: { min: 3, max: 8 },
      target_rps: 0,
    });
    await waitFor(() => expect(field('Maximum turns')).toHaveValue('5')); // in force, until a snapshot says otherwise
  });

  it('are those of the kind of load', async () => {
    const { client } = await showLane({ state: { concurrency: { target: '12/s', actual: 84 } } });
    await open();
    expect(screen.queryByRole('textbox', { name: 'Start rate' })).not.toBeInTheDocument();
    expect(screen.queryByRole('textbox', { name: 'Burstiness' })).not.toBeInTheDocument();
    await userEvent.click(screen.getByRole('radio', { name: 'Gamma' }));
    await enter('Burstiness', '0.5');
    await enter('Most turns in flight', '200');
    await userEvent.click(button('Apply'));
    expect(client.writes).toHaveBeenCalledWith('PATCH', '/workload?lane=main', {
      arrivals: 'gamma',
      burstiness: 0.5,
      max_inflight: 200,
    });
    await answered();
  });

  it('are checked where they are entered', async () => {
    await showLane();
    await open();
    await enter('Minimum turns', '9');
    expect(screen.getByText('At most 5')).toBeInTheDocument();
    await enter('Start rate', '0');
    expect(screen.getByText('A number above 0, up to 1000')).toBeInTheDocument();
    expect(button('Apply')).toBeDisabled();
  });

  it('show the load generator’s refusal beside its field, and keep the entered value', async () => {
    const { client } = await showLane();
    client.writes.mockRejectedValue(
      new Problem(422, 'max_tokens: 9000 is not allowed: 1 to 4096', 'max_tokens', '1 to 4096')
    );
    await open();
    await enter('Longest answer', '9000');
    await userEvent.click(button('Apply'));
    expect(screen.getAllByRole('alert')).toHaveLength(1); // the field's own
    expect(screen.getByRole('alert')).toHaveTextContent('max_tokens: 9000 is not allowed: 1 to 4096');
    expect(field('Longest answer')).toHaveValue('9000');
    expect(screen.queryByText('The workload was not changed')).not.toBeInTheDocument();
  });
});

describe('a mode that is not reported', () => {
  const unreported = { mode: 'unknown' as const, driver: 'manual', speculation: 'off' as const };

  it('is requested once, and nothing is switched', async () => {
    const { client } = await showLane({ state: unreported });
    const answers = () => within(screen.getByRole('group', { name: 'Routing mode of this server' }));
    expect(answers().getAllByRole('button')).toHaveLength(3);
    expect(screen.queryByRole('group', { name: 'Routing' })).not.toBeInTheDocument(); // which would switch
    await userEvent.click(answers().getByRole('button', { name: 'Round-robin' }));
    const said = { mode: 'round_robin', speculation: 'off', in_force: true };
    expect(client.writes).toHaveBeenCalledWith('PUT', '/cluster/mode?lane=main', said);
    act(() => client.show({ state: { ...unreported, mode: 'round_robin', mode_from: 'operator' } }));
    expect(screen.queryByText('Which routing mode does this server use now?')).not.toBeInTheDocument();
    expect(screen.getByRole('group', { name: 'Routing' })).toBeInTheDocument();
  });

  it('may stay unknown, and be entered later', async () => {
    const { client } = await showLane({ state: unreported });
    await userEvent.click(button('Another mode, or unknown'));
    expect(client.writes).toHaveBeenCalledWith('PUT', '/cluster/mode?lane=main', { mode: 'unknown', in_force: true });
    const clock = jest.spyOn(Date, 'now').mockReturnValue(Date.now() + 1000); // the snapshot follows the answer
    act(() => client.show({ state: { ...unreported, mode_from: 'operator' } }));
    clock.mockRestore();
    expect(screen.queryByText('Which routing mode does this server use now?')).not.toBeInTheDocument();
    expect(screen.getAllByText('Mode unknown')).toHaveLength(2); // among the figures, and as the mode in force
    await userEvent.click(button('Set the routing mode of this server'));
    await userEvent.click(
      within(screen.getByRole('group', { name: 'Routing mode of this server' })).getByRole('button', {
        name: 'KV-aware',
      })
    );
    const said = { mode: 'kv', speculation: 'off', in_force: true };
    expect(client.writes).toHaveBeenLastCalledWith('PUT', '/cluster/mode?lane=main', said);
  });

  it.each([
    ['a viewer', viewer, 'manual'],
    ['any user where the driver reports it', undefined, 'simulated'],
  ])('is not asked of %s', async (_, who, driver) => {
    const client = new FakeClient();
    if (who) {
      client.who.mockResolvedValue(who);
    }
    client.show({ state: { ...unreported, driver } });
    await show(client);
    expect(screen.queryByText('Which routing mode does this server use now?')).not.toBeInTheDocument();
    expect(screen.getAllByText('Mode unknown').length).toBeGreaterThan(0);
  });
});

describe('trouble', () => {
  it('is reported: the load generator is unreachable', async () => {
    const { client } = await showLane();
    act(() => client.lose('http://127.0.0.1:8088: connection refused'));
    expect(screen.getByRole('alert')).toHaveTextContent(/The load generator is unreachable.*connection refused/);
    expect(screen.getByRole('timer')).toHaveTextContent(/Since .*\(0 s\)/);
    expect(slider()).toBeDisabled();
    expect(screen.getAllByText('—')).toHaveLength(5);
  });

  it('is reported: the target does not answer', async () => {
    await showLane({ target: { reachable: false, problem: 'connection refused; is the server running?' } });
    expect(screen.getByRole('alert')).toHaveTextContent(/The target is unreachable.*is the server running\?/);
  });

  it('is reported: there is no such lane', async () => {
    const client = new FakeClient();
    client.show({ name: 'other' });
    await show(client);
    expect(screen.getByText('There is no lane “main”. Lanes: other.')).toBeInTheDocument();
    expect(button('Start')).toBeDisabled();
  });
});

it('names the lane only where there are two', async () => {
  const { client } = await showLane();
  expect(screen.queryByText('Lane main')).not.toBeInTheDocument();
  act(() => client.show({}, { lanes: [laneSnapshot(), laneSnapshot({ name: 'twin' })] }));
  expect(screen.getByText('Lane main')).toBeInTheDocument();
});

describe('while a trial has the workload', () => {
  const taken: LaneChange = { state: { sweep: sweepSummary() } };
  const title = 'A trial is in progress: KV-aware vs. Round-robin at 120';

  it('is shown in place of the disabled controls, and Stop pauses it', async () => {
    const { client } = await showLane(taken);
    expect(screen.getByText(title)).toBeInTheDocument();
    expect(screen.getByText(/^Pause it on the Benchmarks page .* Stop also pauses the trial\.$/)).toBeInTheDocument();
    expect(texts(screen.getAllByRole('button'))).toEqual(['Start', 'Stop', 'Drain', 'Measure anew']);
    expect(screen.queryByRole('slider')).not.toBeInTheDocument();
    expect(button('Start')).toBeDisabled();
    expect(button('Measure anew')).toBeDisabled();
    await userEvent.click(button('Stop'));
    expect(screen.getByText(/a span in progress is discarded and measured again on resume/)).toBeInTheDocument();
    await confirm();
    expect(client.writes).toHaveBeenLastCalledWith('POST', '/workload/stop?lane=main', { drain: false });
  });

  it('can be stopped between its spans, too, when nothing could be started', async () => {
    await showLane({ state: { ...stopped.state, sweep: sweepSummary() } });
    expect(button('Start')).toBeDisabled();
    expect(button('Stop')).toBeEnabled();
  });

  it('accepts the confirmation of a manual switch, but cancels none', async () => {
    const waits = { ...change, phase: 'waiting_for_operator' };
    const { client } = await showLane({ state: { ...taken.state, phase: 'switching', mode_change: waits } });
    expect(screen.queryByRole('button', { name: 'Cancel the change' })).not.toBeInTheDocument();
    await userEvent.click(button('Confirm: done'));
    expect(client.writes).toHaveBeenLastCalledWith('PUT', '/cluster/mode?lane=main', { ...change.to, confirm: true });
  });

  it('is shown to viewers, too, and while the workload is restored', async () => {
    const client = new FakeClient();
    client.who.mockResolvedValue(viewer);
    client.show(taken);
    await show(client);
    expect(screen.getByText(title)).toBeInTheDocument();
    act(() => client.show({ state: { sweep: sweepSummary({ state: 'paused' }) } }));
    expect(screen.getByText(/the previous workload is being restored$/)).toBeInTheDocument();
  });
});

describe('accessibility', () => {
  const waiting = { ...change, phase: 'waiting_for_operator' };
  const states: Array<[string, LaneChange]> = [
    ['running', {}],
    ['stopped', stopped],
    ['switching', { state: { phase: 'switching', mode_change: waiting } }],
    ['failed', { state: { mode_change: { ...change, failed: true } }, target: { reachable: false } }],
    ['held', held('target_rps')],
    ['at a rate', { state: { concurrency: { target: '12/s', actual: 84 } } }],
    ['taken by a trial', { state: { sweep: sweepSummary() } }],
  ];

  it('has no violation in any state', async () => {
    const client = new FakeClient();
    const { container } = await show(client);
    expect(await violations(container)).toEqual([]); // loading
    for (const [name, lane] of states) {
      act(() => client.show(lane));
      const more = screen.queryByRole('button', { name: 'Traffic', expanded: false });
      if (more) {
        await userEvent.click(more);
      }
      expect({ name, found: await violations(container) }).toEqual({ name, found: [] });
    }
    act(() => client.lose());
    expect(await violations(container)).toEqual([]);
  });
});
