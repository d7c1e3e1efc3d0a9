import type { ComponentType } from 'react';
import { act, screen } from '@testing-library/react';
import userEvent from '@testing-library/user-event';

import { Problem } from '../../client';
import { FakeClient, laneSnapshot, settings, sweepSummary, viewer, type LaneChange } from '../../test/fixtures';
import { renderWith } from '../../test/render';
import { answered } from '../../test/settled';
import { hasTwin } from '../lane';
import { PageBase } from '../navigation';
import { Header, Navigation, PageRoutes, useBooth, useCurrentPage } from '.';
import { PageErrorBoundary } from './PageErrorBoundary';

jest.mock('../../lib/useNow', () => ({ useNow: () => Date.now(), useAge: () => 0 }));

jest.mock('../registry', () => {
  const load = (component: ComponentType) => () => Promise.resolve({ default: component });
  return {
    pages: [
      { id: 'first', path: '', title: 'First', icon: 'apps', load: load(() => <h2>The first page</h2>) },
      { id: 'many', path: 'many', title: 'Many', icon: 'apps', load: load(() => <h2>All of them</h2>) },
      { id: 'two', path: 'two', title: 'Two', icon: 'apps', twin: true, load: load(() => <h2>Both</h2>) },
      { id: 'broken', path: 'broken', title: 'Broken', icon: 'apps', load: load(Broken) },
      {
        id: 'gone',
        path: 'gone',
        title: 'Gone',
        icon: 'apps',
        load: () => Promise.reject(new Error('chunk 7 failed')),
      },
      { id: 'late', path: 'late', title: 'Late', icon: 'apps', nested: true, load: () => mockLate() },
    ],
  };
});

const mockLate = jest.fn<Promise<{ default: ComponentType }>, []>(() => Promise.reject(new Error('chunk 8 failed')));

function Broken(): never {
  throw new Error('no such field');
}

function Shell() {
  const booth = useBooth();
  return (
    <>
      <Header booth={booth} tools={<button>More</button>} />
      <Navigation twin={hasTwin(booth.live)} />
      <main aria-label={useCurrentPage()?.title ?? 'none'}>
        <PageRoutes />
      </main>
    </>
  );
}

async function show(client = new FakeClient(), address = '/', base = '') {
  const result = renderWith(
    client,
    <PageBase.Provider value={base}>
      <Shell />
    </PageBase.Provider>,
    address
  );
  await answered();
  return result;
}

const stopped: LaneChange = { state: { running: false, phase: 'stopped', concurrency: { target: 80, actual: 0 } } };
const button = (name: string) => screen.getByRole('button', { name });

describe('the header', () => {
  it('has the name of the product until the settings are known, and keeps them over a loss', async () => {
    const { client } = await show();
    expect(screen.getByRole('heading', { level: 1, name: 'KV Booth' })).toBeInTheDocument();
    act(() => client.show({}, { settings: settings({ title: 'More users', subtitle: 'on the same GPUs' }) }));
    expect(screen.getByRole('heading', { level: 1, name: 'More users' })).toBeInTheDocument();
    expect(screen.getByText('on the same GPUs')).toBeInTheDocument();
    act(() => client.lose());
    expect(screen.getByRole('heading', { level: 1, name: 'More users' })).toBeInTheDocument();
    expect(screen.getByRole('status')).toHaveTextContent('Load generator lost');
    act(() => client.show({}, { settings: settings({ title: '' }) }));
    expect(screen.getByRole('heading', { level: 1, name: 'KV Booth' })).toBeInTheDocument();
  });

  it('marks a simulated cluster, and not a real one', async () => {
    const { client } = await show();
    act(() => client.show({ state: { driver: 'simulated' } }));
    expect(screen.getByText('Simulated cluster')).toBeInTheDocument();
    act(() => client.show({ state: { simulation: { profile: 'h200-tp1', calibrated: true, speed: 1 } } }));
    expect(screen.getByText('Simulated cluster')).toBeInTheDocument();
    act(() => client.show({ state: { simulation: { profile: 'h200-tp1', calibrated: false, speed: 1 } } }));
    expect(screen.getByText('Simulated cluster, not calibrated')).toBeInTheDocument();
    act(() => client.show({ state: { driver: 'kubernetes' } }));
    expect(screen.queryByText(/^Simulated cluster/)).not.toBeInTheDocument();
  });
});

describe('Start and Stop', () => {
  it('are offered where they have an effect', async () => {
    const { client } = await show();
    const enabled = () => ['Start', 'Stop'].filter((name) => !button(name).hasAttribute('disabled'));
    expect(enabled()).toEqual([]);
    act(() => client.show());
    expect(enabled()).toEqual(['Stop']);
    act(() => client.show(stopped));
    expect(enabled()).toEqual(['Start']);
    act(() => client.lose());
    expect(enabled()).toEqual([]);
  });

  it('offer only Stop while a trial has the workload, between its spans, too', async () => {
    const { client } = await show();
    act(() => client.show({ state: { phase: 'stopped', running: false, sweep: sweepSummary() } }));
    expect(button('Start')).toBeDisabled();
    expect(button('Start')).toHaveAttribute('title', 'A trial is in progress: KV-aware vs. Round-robin at 120');
    expect(button('Stop')).toBeEnabled();
  });

  it('are disabled until the user is known', async () => {
    const client = new FakeClient();
    client.who.mockReturnValue(new Promise(() => undefined));
    await show(client);
    act(() => client.show(stopped));
    expect(button('Start')).toBeDisabled();
  });

  it('report a failure in words, until it is dismissed', async () => {
    const { client } = await show();
    act(() => client.show(stopped));
    client.writes.mockRejectedValueOnce(new Problem(503, 'the target is not reachable'));
    await userEvent.click(button('Start'));
    expect(screen.getByRole('alert')).toHaveTextContent('The workload was not started: the target is not reachable');
    await userEvent.click(button('Dismiss'));
    expect(screen.queryByRole('alert')).not.toBeInTheDocument();
  });

  it.each([
    [viewer, 'The role Viewer can view'],
    [{ ...viewer, role: '' }, 'requires the token'],
  ])('are replaced by the reason for users who may not use them', async (me, why) => {
    const client = new FakeClient();
    client.who.mockResolvedValue(me);
    await show(client);
    act(() => client.show());
    expect(screen.queryByRole('button', { name: 'Start' })).not.toBeInTheDocument();
    expect(screen.getByText('Read only')).toHaveAttribute('title', expect.stringContaining(why));
  });
});

describe('the pages', () => {
  it('are in the navigation with a second lane only where there is one', async () => {
    const { client } = await show();
    act(() => client.show());
    expect(button('More')).toBeInTheDocument(); // the host's addition to the header
    expect(screen.queryByRole('link', { name: 'Two' })).not.toBeInTheDocument();
    act(() => client.show({}, { lanes: [laneSnapshot(), laneSnapshot({ name: 'twin' })] }));
    await userEvent.click(screen.getByRole('link', { name: 'Two' }));
    expect(await screen.findByText('Both')).toBeInTheDocument();
    act(() => client.lose());
    expect(screen.getByRole('link', { name: 'Two' })).toBeInTheDocument();
  });

  it('have the address of their host', async () => {
    await show(new FakeClient(), '/a/app/many', '/a/app');
    expect(screen.getByRole('link', { name: 'First' })).toHaveAttribute('href', '/a/app');
    expect(screen.getByRole('link', { name: 'Many' })).toHaveAttribute('href', '/a/app/many');
    expect(screen.getByRole('main', { name: 'Many' })).toBeInTheDocument();
  });

  it.each([
    ['/broken', 'Broken', 'no such field'],
    ['/gone', 'Gone', 'chunk 7 failed'],
  ])('%s: one that fails says so, and leaves the others alone', async (address, title, message) => {
    const log = jest.spyOn(console, 'error').mockImplementation();
    await show(new FakeClient(), address);
    expect(await screen.findByText(`“${title}” failed to load`)).toBeInTheDocument();
    expect(screen.getByText(message)).toBeInTheDocument();
    await userEvent.click(screen.getByRole('link', { name: 'First' }));
    expect(await screen.findByText('The first page')).toBeInTheDocument();
    expect(screen.queryByText(message)).not.toBeInTheDocument();
    log.mockRestore();
  });

  it('are reloaded after a failure, on request', async () => {
    const log = jest.spyOn(console, 'error').mockImplementation();
    const [retry, reload] = [jest.fn(), jest.fn()];
    renderWith(
      new FakeClient(),
      <PageErrorBoundary title="Broken" retry={retry} reload={reload}>
        <Broken />
      </PageErrorBoundary>
    );
    await userEvent.click(button('Try again'));
    expect(retry).toHaveBeenCalledTimes(1);
    await userEvent.click(button('Reload everything'));
    expect(reload).toHaveBeenCalledTimes(1);
    log.mockRestore();
  });

  it('that could not be loaded are loaded when the load generator is reachable again', async () => {
    const log = jest.spyOn(console, 'error').mockImplementation();
    const { client } = await show(new FakeClient(), '/late');
    expect(await screen.findByText('“Late” failed to load')).toBeInTheDocument();
    act(() => client.show());
    act(() => client.show());
    expect(screen.getByText(/Trying again often helps/)).toBeInTheDocument();
    act(() => client.lose());
    expect(screen.getByText(/automatically once the load generator is back/)).toBeInTheDocument();
    expect(screen.queryByRole('button', { name: 'Reload everything' })).not.toBeInTheDocument();
    mockLate.mockResolvedValue({ default: () => <h2>Late, but there</h2> });
    act(() => client.show());
    expect(await screen.findByText('Late, but there')).toBeInTheDocument();
    log.mockRestore();
  });
});
