import { act, fireEvent, render, screen, waitFor } from '@testing-library/react';
import userEvent from '@testing-library/user-event';
import { of, Subject, throwError, type Observable } from 'rxjs';

import { getBackendSrv, locationService } from '@grafana/runtime';

import type { Settings } from '../client';
import { violations } from '../test/axe';
import { settings } from '../test/fixtures';
import ConfigPage from './ConfigPage';
import { PLUGIN_IDS } from './pluginSettings';

jest.mock('@grafana/runtime', () =>
  Object.create(jest.requireActual('@grafana/runtime'), { getBackendSrv: { value: jest.fn() } })
);

// A Combobox measures its texts and its list; jsdom draws neither.
jest.mock('@grafana/ui', () => Object.create(jest.requireActual('@grafana/ui'), { Combobox: { value: MockSelect } }));

function MockSelect({ id, options, value, onChange }: SelectProps) {
  return (
    <select id={id} value={value} onChange={(event) => onChange({ value: event.currentTarget.value })}>
      {options.map((option) => (
        <option key={option.value} value={option.value}>
          {option.label}
        </option>
      ))}
    </select>
  );
}

interface SelectProps {
  id: string;
  options: Array<{ value: string; label: string }>;
  value: string;
  onChange(option: { value: string }): void;
}

interface Request {
  url: string;
  method: string;
  data?: unknown;
}

const answers = new Map<string, (request: Request) => Observable<unknown>>();
const requests: Request[] = [];

const base = '/api/plugins/kvbooth-inference-app';

/** Sets the answer to a call. */
function answer(call: string, data: unknown) {
  answers.set(call, () => of({ data }));
}

/** Makes a call fail. */
function refuse(call: string, status: number, data: unknown) {
  answers.set(call, () => throwError(() => ({ status, statusText: '', config: {}, data })));
}

beforeEach(() => {
  answers.clear();
  requests.length = 0;
  const fetch = (request: Request) => {
    requests.push(request);
    const reply = answers.get(`${request.method} ${request.url.replace(base, '')}`);
    if (!reply) {
      throw new Error(`unexpected ${request.method} ${request.url}`);
    }
    return reply(request);
  };
  jest.mocked(getBackendSrv).mockReturnValue({ fetch } as never);
  answer('GET /settings', {
    enabled: true,
    pinned: true,
    jsonData: { sidecarUrl: 'http://127.0.0.1:8088', timeout: 7 },
    secureJsonFields: { token: true },
  });
  answer('POST /settings', {});
  PLUGIN_IDS.slice(1).forEach((id) => answer(`GET /api/plugins/${id}/settings`, {}));
  answer('GET /health', { status: 'OK', message: 'Load generator 1.0 answers.' });
  answer('GET /resources/settings', settings());
  answer('GET /resources/baselines', { baselines: [{ name: 'h200', title: '3 × H200', rows: [] }] });
});

async function show() {
  const result = render(<ConfigPage />);
  await screen.findByRole('form', { name: 'Connection' });
  await screen.findByRole('form', { name: 'Load generator' });
  return result;
}

const field = (name: string | RegExp) => screen.getByRole<HTMLInputElement>('textbox', { name });
const save = (form: 'Connection' | 'Load generator') =>
  screen.getAllByRole('button', { name: 'Save' })[form === 'Connection' ? 0 : 1];
const sent = (method: string) => requests.filter((request) => request.method === method);

async function enter(name: string | RegExp, value: string) {
  await act(async () => void fireEvent.change(field(name), { target: { value } }));
}

describe('connection', () => {
  it('cannot be saved while nothing has changed', async () => {
    await show();
    expect(save('Connection')).toBeDisabled();
    expect(screen.queryByText('Unsaved changes')).not.toBeInTheDocument();
    await enter(/^Load generator URL/, 'http://other:8088');
    expect(screen.getByText('Unsaved changes')).toBeInTheDocument();
    expect(save('Connection')).toBeEnabled();
    await enter(/^Load generator URL/, 'http://127.0.0.1:8088');
    expect(save('Connection')).toBeDisabled();
  });

  it('is saved with fields that the page does not show, and without unchanged secrets; then it is tested', async () => {
    await show();
    await userEvent.click(screen.getByRole('radio', { name: 'Admins only' }));
    await userEvent.click(save('Connection'));
    expect(await screen.findByText('The connection works')).toBeInTheDocument();
    expect(sent('POST')[0]).toMatchObject({
      url: `${base}/settings`,
      data: {
        enabled: true,
        pinned: true,
        jsonData: { sidecarUrl: 'http://127.0.0.1:8088', operatorRole: 'Admin', tlsSkipVerify: false, timeout: 7 },
        secureJsonData: {},
      },
    });
  });

  it('requires the token again where the URL has changed, and drops the stored one', async () => {
    await show();
    expect(screen.getByLabelText(/^Token/)).toHaveValue('configured');
    await enter(/^Load generator URL/, 'http://other:8088');
    expect(screen.getByLabelText(/^Token/)).toHaveValue('');
    expect(screen.getByText(/Enter the token for this URL/)).toBeInTheDocument();
    await userEvent.click(save('Connection'));
    await waitFor(() => expect(sent('POST')).toHaveLength(1));
    expect(sent('POST')[0].data).toMatchObject({
      jsonData: { sidecarUrl: 'http://other:8088' },
      secureJsonData: { token: '' },
    });
  });

  it('replaces a token that was reset', async () => {
    await show();
    await userEvent.click(screen.getByRole('button', { name: /reset/i }));
    fireEvent.change(screen.getByLabelText(/^Token/), { target: { value: 'secret' } });
    await userEvent.click(save('Connection'));
    await waitFor(() => expect(sent('POST')).toHaveLength(1));
    expect(sent('POST')[0].data).toMatchObject({ secureJsonData: { token: 'http://127.0.0.1:8088 secret' } });
  });

  it('has the TLS options of Grafana', async () => {
    const { container } = await show();
    expect(screen.queryByLabelText('CA certificate')).not.toBeInTheDocument();
    await userEvent.click(screen.getByRole('checkbox', { name: /^Custom certificate authority/ }));
    await enter('CA certificate', 'PEM');
    await enter(/^Server name/, 'gpu.internal');
    expect(await violations(container)).toEqual([]);
    await userEvent.click(save('Connection'));
    await waitFor(() => expect(sent('POST')).toHaveLength(1));
    expect(sent('POST')[0].data).toMatchObject({
      jsonData: { tlsAuthWithCACert: true, serverName: 'gpu.internal' },
      secureJsonData: { tlsCACert: 'PEM' },
    });
  });

  it('keeps what was entered when it cannot be saved', async () => {
    refuse('POST /settings', 500, { message: 'database is locked' });
    await show();
    await enter(/^Load generator URL/, 'http://other:8088');
    await userEvent.click(save('Connection'));
    expect(await screen.findByRole('alert')).toHaveTextContent('database is locked');
    expect(field(/^Load generator URL/)).toHaveValue('http://other:8088');
    expect(screen.getByText('Unsaved changes')).toBeInTheDocument();
  });

  it.each(['', 'ftp://x', 'http://', 'http://u:p@host', 'http://host/?q=1', '127.0.0.1:8088'])(
    'refuses the URL "%s"',
    async (url) => {
      await show();
      await enter(/^Load generator URL/, url);
      expect(screen.getByText('http:// or https://, a host, and optionally a port and a path')).toBeInTheDocument();
      expect(save('Connection')).toBeDisabled();
    }
  );

  it('resets to the stored values', async () => {
    await show();
    await enter(/^Load generator URL/, 'http://other:8088');
    await userEvent.click(screen.getAllByRole('button', { name: 'Discard changes' })[0]);
    expect(field(/^Load generator URL/)).toHaveValue('http://127.0.0.1:8088');
    expect(screen.queryByText('Unsaved changes')).not.toBeInTheDocument();
  });
});

describe('the test of the connection', () => {
  const test = () => screen.getByRole('button', { name: 'Test connection' });

  it('shows the backend’s text, also of a failure', async () => {
    refuse('GET /health', 503, {
      status: 'ERROR',
      message: 'The token is wrong. Enter the one that the load generator was started with.',
    });
    await show();
    await userEvent.click(test());
    const alert = await screen.findByRole('alert');
    expect(alert).toHaveTextContent('The connection failed');
    expect(alert).toHaveTextContent('Enter the one that the load generator was started with.');
  });

  it('is of the connection saved last, whichever answer arrives first', async () => {
    const old = new Subject<unknown>();
    answers.set('GET /health', () => old);
    await show();
    await userEvent.click(test());
    answer('GET /health', { status: 'OK', message: 'Load generator 2.0 answers.' });
    await userEvent.click(screen.getByRole('radio', { name: 'Admins only' }));
    await userEvent.click(save('Connection'));
    expect(await screen.findByText(/Load generator 2.0 answers/)).toBeInTheDocument();
    await act(async () => {
      old.next({ data: { status: 'OK', message: 'Load generator 1.0 answers.' } });
      old.complete();
    });
    expect(screen.getByText(/Load generator 2.0 answers/)).toBeInTheDocument();
  });

  it('uses the saved settings', async () => {
    await show();
    await enter(/^Load generator URL/, 'http://other:8088');
    expect(test()).toBeDisabled();
    expect(test()).toHaveAttribute('title', expect.stringContaining('Save first'));
  });
});

describe('the load generator’s settings', () => {
  it('are shown, SLOs in milliseconds, and sent as far as they changed', async () => {
    const next = settings({ slo: { ttft: 0.5505, tpot: 0.06 }, title: 'Ours' });
    answer('PATCH /resources/settings', next);
    await show();
    expect(field('SLO of TTFT p95')).toHaveValue('600');
    expect(field('SLO of TPOT p95')).toHaveValue('60');
    await enter('SLO of TTFT p95', '550.5');
    await enter('Title', 'Ours');
    await userEvent.click(save('Load generator'));
    expect(await screen.findByText('Saved')).toBeInTheDocument();
    expect(sent('PATCH')[0].data).toEqual({ slo: { ttft: 0.5505, tpot: 0.06 }, title: 'Ours' });
    expect(field('SLO of TTFT p95')).toHaveValue('550.5');
    expect(save('Load generator')).toBeDisabled();
  });

  it('show a problem at its field, and keep what was entered', async () => {
    refuse('PATCH /resources/settings', 422, {
      detail: 'max_concurrency: 100 is not allowed: at least 120',
      field: 'max_concurrency',
    });
    await show();
    await enter('Highest concurrency', '100');
    await userEvent.click(save('Load generator'));
    const alert = await screen.findByRole('alert');
    expect(alert).toHaveTextContent('Highest concurrency: 100 is not allowed: at least 120'); // the name in the form
    expect(screen.queryByText('The changes were not saved')).not.toBeInTheDocument();
    expect(field('Highest concurrency')).toHaveValue('100');
  });

  it('report of a problem without a field that nothing was saved', async () => {
    refuse('PATCH /resources/settings', 503, { detail: 'the settings cannot be stored: disk full' });
    await show();
    await enter('Subtitle', 'x');
    await userEvent.click(save('Load generator'));
    expect(await screen.findByText('The changes were not saved')).toBeInTheDocument();
    expect(screen.getByText(/disk full/)).toBeInTheDocument();
  });

  it('are checked before they are sent', async () => {
    await show();
    await enter('Slider from', '200');
    expect(screen.getByText('Less than 180')).toBeInTheDocument();
    expect(save('Load generator')).toBeDisabled();
  });

  it.each<[string, RegExp, string, Partial<Settings>]>([
    ['baselines', /^Default baseline/, '3 × H200', { default_baseline: 'h200' }],
    ['vendors', /^Vendor/, 'DigitalOcean', { vendor: 'digitalocean' }],
  ])('offer the %s that there are', async (_, name, option, patch) => {
    answer('PATCH /resources/settings', settings(patch));
    await show();
    await userEvent.selectOptions(screen.getByRole('combobox', { name }), option);
    await userEvent.click(save('Load generator'));
    await waitFor(() => expect(sent('PATCH')[0]?.data).toEqual(patch));
  });

  it('report why they cannot be read, and can be requested again', async () => {
    refuse('GET /resources/settings', 502, { detail: 'http://127.0.0.1:8088: connection refused' });
    render(<ConfigPage />);
    expect(await screen.findByText(/connection refused/)).toBeInTheDocument();
    answer('GET /resources/settings', settings());
    await userEvent.click(screen.getByRole('button', { name: 'Try again' }));
    expect(await screen.findByRole('form', { name: 'Load generator' })).toBeInTheDocument();
    expect(screen.queryByText(/connection refused/)).not.toBeInTheDocument();
  });
});

describe('unsaved changes', () => {
  const leave = () => act(() => locationService.push('/elsewhere'));
  const close = () => !window.dispatchEvent(new Event('beforeunload', { cancelable: true }));

  it('are not left without a confirmation', async () => {
    await show();
    expect(close()).toBe(false);
    await enter('Title', 'Ours');
    expect(close()).toBe(true);
    leave();
    expect(screen.getByText('Leave without saving?')).toBeInTheDocument();
    expect(locationService.getLocation().pathname).not.toBe('/elsewhere');
    await userEvent.click(screen.getByRole('button', { name: 'Stay' }));
    expect(screen.queryByText('Leave without saving?')).not.toBeInTheDocument();
    expect(field('Title')).toHaveValue('Ours');
    leave();
    await userEvent.click(screen.getByRole('button', { name: 'Leave' }));
    expect(locationService.getLocation().pathname).toBe('/elsewhere');
  });

  it('do not block leaving once there are none', async () => {
    locationService.push('/plugins');
    const { unmount } = await show();
    leave();
    expect(locationService.getLocation().pathname).toBe('/elsewhere');
    unmount();
    expect(close()).toBe(false);
  });
});

describe('before anything is configured', () => {
  beforeEach(() => answer('GET /settings', { enabled: true, pinned: true, jsonData: {}, secureJsonFields: {} }));

  it('has an empty form, no error and no pending request', async () => {
    const { container } = render(<ConfigPage />);
    await screen.findByRole('form', { name: 'Connection' });
    expect(field(/^Load generator URL/)).toHaveValue('');
    expect(screen.getByText(/appear here once the connection is saved/)).toBeInTheDocument();
    expect(screen.queryByRole('alert')).not.toBeInTheDocument();
    expect(screen.queryByText(/^Asking/)).not.toBeInTheDocument();
    expect(requests.some(({ url }) => url.includes('/resources/settings'))).toBe(false);
    expect(await violations(container)).toEqual([]);
  });

  it('names where the app is enabled, and requests nothing of it before', async () => {
    answer('GET /settings', { jsonData: { sidecarUrl: 'http://127.0.0.1:8088' } });
    render(<ConfigPage />);
    expect(await screen.findByText('The app is not enabled yet')).toBeInTheDocument();
    expect(screen.getByText(/appear here once the app is enabled and the connection is saved/)).toBeInTheDocument();
    expect(requests.some(({ url }) => url.includes('/resources/'))).toBe(false);
  });
});

describe('panels that Grafana has not loaded', () => {
  it('are named, with all ids to allow-list', async () => {
    // The answer of Grafana 12.2.
    refuse('GET /api/plugins/kvbooth-controls-panel/settings', 500, { message: 'Plugin signature is missing' });
    refuse('GET /api/plugins/kvbooth-comparison-panel/settings', 404, { message: 'Plugin not found' });
    await show();
    expect(
      await screen.findByText('Grafana has not loaded kvbooth-controls-panel and kvbooth-comparison-panel')
    ).toBeInTheDocument();
    const files = PLUGIN_IDS.slice(1).map((id) => `../panels/${id.split('-')[1]}/plugin.json`);
    const ids = ['../plugin.json', ...files].map((file) => jest.requireActual<{ id: string }>(file).id);
    expect(screen.getByText(ids.join(','))).toBeInTheDocument();
  });

  it('do not include plugins of unknown state', async () => {
    refuse('GET /api/plugins/kvbooth-controls-panel/settings', 403, { message: 'no' });
    refuse('GET /api/plugins/kvbooth-comparison-panel/settings', 500, { message: 'no' });
    await show();
    expect(screen.queryByText(/^Grafana has not loaded/)).not.toBeInTheDocument();
  });
});

describe('the page', () => {
  it('reports why the settings cannot be read', async () => {
    refuse('GET /settings', 403, { message: 'You need the role Admin.' });
    render(<ConfigPage />);
    expect(await screen.findByText('You need the role Admin.')).toBeInTheDocument();
  });
});
