import { act, screen, within } from '@testing-library/react';
import userEvent from '@testing-library/user-event';

import { cluster, manyWorkers, laneChange } from '../../components/Diagram/fixtures';
import { violations } from '../../test/axe';
import { FakeClient, settings, type LaneChange } from '../../test/fixtures';
import { renderWith } from '../../test/render';
import { settled } from '../../test/settled';
import { vendors, type VendorName } from '../../vendor';
import Architecture from '.';
import { STEP } from './chaser';

const status = { lanes: [{ name: 'main', extensions: { nvext: true }, corpus: { followup: 'built-in questioner' } }] };

async function show(lane?: LaneChange) {
  const client = new FakeClient();
  client.reads.mockResolvedValue(status);
  if (lane) {
    client.show(lane);
  }
  const result = renderWith(client, <Architecture />, '/');
  await settled(client, ...(lane ? ['/status'] : []));
  return result;
}

const panel = () => screen.getByRole('complementary', { name: 'Explanation' });
const part = (name: RegExp) => screen.getByRole('button', { name });
const workers = () => screen.queryAllByRole('button', { name: /^worker-/ });
const traffic = () => screen.queryByTestId('traffic');

describe('the drawing', () => {
  it('has a part for each worker, with its numbers', async () => {
    await show(laneChange(3));
    expect(workers()).toHaveLength(3);
    expect(part(/^worker-2 12 in flight 2 waiting KV cache 42.0 % GPU 80.0 %/)).toBeInTheDocument();
    expect(part(/^Load generator 4\.60 requests\/s 120 in progress/)).toBeInTheDocument();
    expect(part(/^Router 94\.2 % KV hit rate KV-aware mode/)).toBeInTheDocument();
  });

  it('shows how many workers it omits, and a summary of all', async () => {
    await show({ cluster: manyWorkers() });
    expect(workers()).toHaveLength(2);
    expect(screen.getByText('1,998 more workers')).toBeInTheDocument();
    expect(screen.getByText(/only the busiest and the least busy of 2,000 are listed/)).toBeInTheDocument();
  });

  it('explains what is clicked, and where its number comes from', async () => {
    await show(laneChange(2));
    expect(within(panel()).getByRole('heading', { name: 'Router' })).toBeInTheDocument();
    await userEvent.click(part(/^worker-1/));
    expect(within(panel()).getByText(/prefills the part of the prompt that is not in its cache/)).toBeInTheDocument();
    expect(within(panel()).getByText(/engine’s queue. Read from Prometheus/)).toBeInTheDocument();
    expect(part(/^worker-1/)).toHaveAttribute('aria-pressed', 'true');
    await userEvent.click(part(/^Event plane/));
    expect(within(panel()).getByText('No metrics are reported for this part.')).toBeInTheDocument();
  });

  it('says what the simulated cluster lacks', async () => {
    const { container } = await show(laneChange(3));
    expect(screen.getByText(/^Simulated cluster:/)).toBeInTheDocument();
    await userEvent.click(await screen.findByRole('button', { name: /^End-user model not here/ }));
    expect(within(panel()).getByText(/Follow-up questions come from: built-in questioner/)).toBeInTheDocument();
    expect(await violations(container)).toEqual([]);
  });

  it('can be read as a list', async () => {
    await show(laneChange(3));
    await userEvent.click(screen.getByRole('button', { name: 'The diagram as a list' }));
    expect(screen.getAllByRole('listitem')).toHaveLength(11);
  });
});

describe('the layers', () => {
  it.each(Object.keys(vendors) as VendorName[])('switch by keyboard to the platform of %s', async (vendor) => {
    const { container, client } = await show(laneChange(3));
    act(() => client.show(laneChange(3), { settings: settings({ vendor }) }));
    screen.getByRole('radio', { name: 'Request path' }).focus();
    await userEvent.keyboard('{ArrowRight}');
    const { groups, name } = (await vendors[vendor]()).platform;
    expect(await screen.findByRole('heading', { level: 2, name })).toBeInTheDocument();
    expect(within(panel()).getByRole('heading', { name: groups[0].title })).toBeInTheDocument();
    expect(within(panel()).getByText(/it does not run on this platform/)).toBeInTheDocument();
    await userEvent.click(screen.getAllByRole('button', { name: new RegExp(`^${groups[1].items[0].title}`) })[0]);
    expect(within(panel()).getByText(groups[1].items[0].text)).toBeInTheDocument();
    expect(await violations(container)).toEqual([]);
  });

  it('keep the switch unchanged over snapshots', async () => {
    const { client } = await show(laneChange(1));
    const before = screen.getByRole('radio', { name: 'Platform' });
    const { id } = before;
    act(() => client.show(laneChange(2)));
    expect(screen.getByRole('radio', { name: 'Platform' })).toBe(before);
    expect(before.id).toBe(id);
  });
});

describe('the dots', () => {
  const still = (matches: boolean) => {
    const list = { matches, addEventListener: () => {}, removeEventListener: () => {} } as unknown as MediaQueryList;
    jest.spyOn(window, 'matchMedia').mockReturnValue(list);
  };
  const hide = (hidden: boolean) => {
    jest.spyOn(document, 'hidden', 'get').mockReturnValue(hidden);
    act(() => void document.dispatchEvent(new Event('visibilitychange')));
  };
  const lit = () => traffic()?.querySelectorAll('[data-light="head"]').length;
  const pass = (ms: number) => act(() => jest.advanceTimersByTimeAsync(ms));
  const steps = () => jest.mocked(window.setInterval).mock.calls.filter(([, ms]) => ms === STEP).length;
  beforeEach(() => {
    jest.useFakeTimers();
    jest.spyOn(window, 'setInterval');
    still(false);
  });
  afterEach(() => {
    jest.restoreAllMocks();
    jest.useRealTimers();
  });

  it('light one after the other while the workload runs, and the legend calls them a sample', async () => {
    await show(laneChange(3));
    expect(lit()).toBe(0);
    await pass(2 * STEP);
    expect(lit()).toBe(1);
    await pass(1000);
    expect(lit()).toBeGreaterThan(2);
    expect(traffic()?.querySelector('[data-light="tail"]')).toBeInTheDocument();
    expect(screen.getByText(/Dots are a sample, not individual requests/)).toBeInTheDocument();
  });

  it('are moved by one timer, which no snapshot restarts', async () => {
    const { client } = await show(laneChange(3));
    await pass(1000);
    const before = lit();
    act(() => client.show(laneChange(3, { kv: { hit_ratio: 0.5, source: 'usage' } })));
    expect(lit()).toBe(before);
    expect(steps()).toBe(1);
  });

  it('follow the paths to the workers when workers appear and disappear', async () => {
    const { client } = await show(laneChange(3));
    await pass(3000);
    act(() => client.show(laneChange(1)));
    expect(lit()).toBe(0);
    await pass(STEP * 2);
    expect(lit()).toBe(1);
    act(() => client.show({ cluster: cluster([]) }));
    await pass(1000);
    expect(traffic()).toBeEmptyDOMElement();
  });

  it('pause while the page is hidden', async () => {
    await show(laneChange(3));
    await pass(1000);
    const before = lit();
    hide(true);
    await pass(1000);
    expect(lit()).toBe(before);
    hide(false);
    await pass(2000);
    expect(lit()).toBeGreaterThan(before!);
  });

  it('end with the page', async () => {
    const { unmount } = await show(laneChange(3));
    const marks = traffic()!;
    await pass(1000);
    unmount();
    expect(marks.querySelector('[data-light]')).toBeNull();
    await pass(3000);
    expect(marks.querySelector('[data-light]')).toBeNull();
    hide(false);
    expect(steps()).toBe(1);
  });

  it('are absent where reduced motion is preferred', async () => {
    still(true);
    await show(laneChange(3));
    expect(traffic()).not.toBeInTheDocument();
    expect(steps()).toBe(0);
    expect(screen.getByText(/your system is set to reduce motion/)).toBeInTheDocument();
  });
});

describe('the drawing without data', () => {
  it('shows that it is loading', async () => {
    await show();
    expect(screen.getByText('Waiting for the first snapshot…')).toBeInTheDocument();
  });

  it('keeps its parts but no number when the load generator is unreachable', async () => {
    const { client } = await show(laneChange(3));
    act(() => client.lose());
    expect(workers()).toHaveLength(3);
    expect(part(/^worker-2 — in flight — waiting/)).toBeInTheDocument();
    expect(traffic()).not.toBeInTheDocument();
    expect(screen.getByText(/no live data/)).toBeInTheDocument();
  });

  it('renders without the status', async () => {
    const client = new FakeClient();
    client.show(laneChange(1, { state: { driver: 'manual' } }));
    renderWith(client, <Architecture />, '/');
    await settled(client, '/status');
    expect(part(/^Discovery plane not known/)).toBeInTheDocument();
  });

  it('falls back to the first part when the chosen worker disappears', async () => {
    const { client } = await show(laneChange(2));
    await userEvent.click(part(/^worker-1/));
    act(() => client.show(laneChange(1)));
    expect(within(panel()).getByRole('heading', { name: 'Load generator' })).toBeInTheDocument();
  });

  it('reports why there are no workers', async () => {
    const none = cluster([], { available: false, source: undefined, problem: 'Prometheus does not answer' });
    await show({ cluster: none });
    expect(workers()).toHaveLength(0);
    expect(screen.getByText('Prometheus does not answer')).toBeInTheDocument();
  });
});
