import { render, screen } from '@testing-library/react';
import userEvent from '@testing-library/user-event';
import { of, throwError } from 'rxjs';

import { LiveChannelEventType, standardEditorsRegistry, type PanelProps } from '@grafana/data';
import { getBackendSrv, getGrafanaLiveSrv, locationService } from '@grafana/runtime';

import { shadow } from '../components/OtherRouters/fixtures';
import { sweep } from '../components/SweepResult/fixtures';
import { admin, comparison, headline, snapshot, viewer } from '../test/fixtures';
import { answered } from '../test/settled';
import { stubSizes } from '../test/sizes';
import { BenchmarksPanel, plugin as benchmarksPlugin, type BenchmarksOptions } from './benchmarks/module';
import { ComparisonPanel, plugin as comparisonPlugin, type ComparisonPanelOptions } from './comparison/module';
import { ControlsPanel, plugin as controlsPlugin, type ControlsOptions } from './controls/module';
import { laneOf } from './lane';
import { plugin as routersPlugin, RoutersPanel, type RoutersOptions } from './routers/module';

jest.mock('@grafana/runtime', () =>
  Object.create(jest.requireActual('@grafana/runtime'), {
    getBackendSrv: { value: jest.fn() },
    getGrafanaLiveSrv: { value: jest.fn() },
  })
);

jest.mock('../lib/useNow', () => ({ useNow: () => Date.now(), useAge: () => 0 }));

const getStream = jest.fn();

beforeEach(() => {
  stubSizes();
  const message = { type: LiveChannelEventType.Message, message: snapshot() };
  getStream.mockReset().mockReturnValue(of(message));
  jest.mocked(getGrafanaLiveSrv).mockReturnValue({ getStream } as never);
  const fetch = ({ url }: { url: string }) =>
    of({ data: url.endsWith('/me') ? admin : comparison({ title: 'Chosen' }) });
  jest.mocked(getBackendSrv).mockReturnValue({ fetch } as never);
});

function props<T extends object>(options: T): PanelProps<T> {
  return { options, replaceVariables: (text: string) => text.replace('$lane', 'main') } as unknown as PanelProps<T>;
}

describe('the panels', () => {
  it('show the controls of the lane that the dashboard selects', async () => {
    render(<ControlsPanel {...props<ControlsOptions>({ lane: '$lane' })} />);
    expect(await screen.findByRole('button', { name: 'Stop' })).toBeEnabled();
    expect(getStream).toHaveBeenCalledWith(expect.objectContaining({ path: 'main/snapshot' }));
  });

  it('show the comparison that the options select', async () => {
    const options: ComparisonPanelOptions = { baseline: 'chosen', hideKV: true, size: 'large' };
    render(<ComparisonPanel {...props(options)} />);
    expect(await screen.findByText(/Baseline: Chosen/)).toBeInTheDocument();
    expect(screen.queryByText('KV p50')).not.toBeInTheDocument();
    expect(screen.getAllByRole('region')[0]).toHaveTextContent(headline().text);
  });

  it('show the sweep that the dashboard selects, and report a choice to it', async () => {
    const older = sweep({ request: { ...sweep().request, title: 'Before' } });
    const newer = sweep({ id: 's2', request: { ...sweep().request, title: 'After' } });
    const answers: Record<string, unknown> = {
      me: admin,
      sweeps: { sweeps: [newer, older], limits: {}, defaults: [], modes: [], metrics: [] },
      s1: older,
      s2: newer,
    };
    const fetch = ({ url }: { url: string }) => of({ data: answers[url.split('/').at(-1) ?? ''] ?? { baselines: [] } });
    jest.mocked(getBackendSrv).mockReturnValue({ fetch } as never);
    const { rerender } = render(<BenchmarksPanel {...props<BenchmarksOptions>({ sweep: '$sweep' })} />);
    expect(await screen.findByRole('heading', { name: 'After' })).toBeInTheDocument();
    rerender(<BenchmarksPanel {...props<BenchmarksOptions>({ sweep: 's1' })} />);
    expect(await screen.findByRole('heading', { name: 'Before' })).toBeInTheDocument();
    await userEvent.click(screen.getByRole('combobox', { name: 'Show' }));
    await userEvent.click(await screen.findByText('After'));
    expect(locationService.getSearch().get('var-sweep')).toBe('s2');
  });

  it('show other routers on the lane that the dashboard selects, and two lanes turn by turn', async () => {
    const fetch = ({ url }: { url: string }) => {
      const path = url.split('/resources')[1];
      return path === '/twin'
        ? throwError(() => ({ status: 404, data: { detail: 'not found: there is one lane' }, config: { url } }))
        : of({ data: path === '/me' ? admin : shadow() });
    };
    jest.mocked(getBackendSrv).mockReturnValue({ fetch } as never);
    const { rerender } = render(<RoutersPanel {...props<RoutersOptions>({ lane: '$lane' })} />);
    expect(await screen.findByRole('row', { name: /^Round-robin/ })).toHaveTextContent('31.0 %');
    rerender(<RoutersPanel {...props<RoutersOptions>({ part: 'pairs' })} />);
    expect(await screen.findByText('There is one lane.')).toBeInTheDocument();
  });

  it('name the next step where the app is not configured yet', async () => {
    const fetch = () => of({ data: { ...viewer, configured: false } });
    jest.mocked(getBackendSrv).mockReturnValue({ fetch } as never);
    for (const panel of [
      <ControlsPanel key="1" {...props({})} />,
      <ComparisonPanel key="2" {...props({})} />,
      <BenchmarksPanel key="3" {...props({})} />,
      <RoutersPanel key="4" {...props({})} />,
    ]) {
      const { unmount } = render(panel);
      expect(await screen.findByText(/^Ask a Grafana administrator to enter/)).toBeInTheDocument();
      expect(screen.queryByRole('region')).not.toBeInTheDocument();
      unmount();
    }
  });

  it('can be scrolled by keyboard', async () => {
    render(<ComparisonPanel {...props({})} />);
    await answered();
    expect(screen.getByRole('group', { name: 'Live against baseline' })).toHaveAttribute('tabindex', '0');
  });
});

describe('the options', () => {
  beforeAll(() => {
    const editors = ['text', 'select', 'boolean', 'radio']; // Grafana's packages do not contain them
    standardEditorsRegistry.setInit(() => editors.map((id) => ({ id, name: id, editor: () => null })));
  });

  it('have their defaults', () => {
    expect(controlsPlugin.defaults).toEqual({ lane: 'main' });
    expect(routersPlugin.defaults).toEqual({ lane: 'main', part: 'shadow' });
    expect(benchmarksPlugin.defaults).toEqual({ lane: 'main', sweep: '', part: 'verdict' });
    expect(comparisonPlugin.defaults).toEqual({
      lane: 'main',
      baseline: '',
      hideRoundRobin: false,
      hideKV: false,
      size: 'normal',
    });
  });
});

describe('laneOf', () => {
  it.each([
    [{}, 'main'],
    [{ lane: 'twin' }, 'twin'],
    [{ lane: '$lane' }, 'main'],
    [{ lane: '$other' }, 'main'],
    [{ lane: ' ' }, 'main'],
  ])('of %j is %s', (options, lane) => {
    expect(laneOf(options, (text = '') => text.replace('$lane', 'main'))).toBe(lane);
  });
});
