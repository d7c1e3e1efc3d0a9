import type { PropsWithChildren, ReactNode } from 'react';
import { act, render, screen } from '@testing-library/react';
import userEvent from '@testing-library/user-event';
import { MemoryRouter, Route, Routes } from 'react-router-dom';

import { ME_RETRY } from '../client/context';
import { violations } from '../test/axe';
import { admin, FakeClient, settings, viewer } from '../test/fixtures';
import App from './App';

const mockClient = new FakeClient();

jest.mock('../client/grafana', () => ({ grafanaClient: mockClientProxy(), PLUGIN_ID: 'kvbooth-inference-app' }));
jest.mock('../pages/registry', () => ({
  pages: [
    { id: 'dashboard', path: '', title: 'Dashboard', icon: 'apps', load: mockPage('Live') },
    { id: 'stage', path: 'stage', title: 'Stage', icon: 'apps', bare: true, load: mockPage('For the crowd') },
  ],
}));
jest.mock('../lib/useNow', () => ({ useNow: () => Date.now(), useAge: () => 0 }));
jest.mock('@grafana/runtime', () => ({
  useChromeHeaderHeight: () => 40,
  PluginPage: ({ renderTitle, pageNav, subTitle, actions, children }: MockPageProps) => (
    <main data-testid="page" data-nav={pageNav?.text}>
      {renderTitle?.('')}
      <p>{subTitle}</p>
      {actions}
      {children}
    </main>
  ),
}));

function mockPage(text: string) {
  return () => Promise.resolve({ default: () => <h2>{text}</h2> });
}

interface MockPageProps extends PropsWithChildren {
  renderTitle?(title: string): ReactNode;
  pageNav?: { text: string };
  subTitle?: string;
  actions?: ReactNode;
}

/** The client is created after the mocks, which are hoisted. */
function mockClientProxy() {
  return {
    live: () => mockClient.live(),
    get: (path: string) => mockClient.get(path),
    write: (method: string, path: string, body: unknown) => mockClient.write(method, path, body),
    me: () => mockClient.me(),
  };
}

function open(address = '/a/kvbooth-inference-app') {
  return render(
    <MemoryRouter initialEntries={[address]}>
      <Routes>
        <Route path="/a/kvbooth-inference-app/*" element={<App />} />
      </Routes>
    </MemoryRouter>
  );
}

it('has the booth’s title and buttons in Grafana’s page, and the pages below the app’s address', async () => {
  open();
  expect(await screen.findByRole('heading', { level: 2, name: 'Live' })).toBeInTheDocument();
  expect(screen.getByRole('heading', { level: 1, name: 'KV Booth' })).toBeInTheDocument();
  // Grafana's menu shows this page under the app's name.
  expect(screen.getByTestId('page')).toHaveAttribute('data-nav', 'Dashboard');
  act(() => mockClient.show({}, { settings: settings({ title: 'More users', subtitle: 'on the same GPUs' }) }));
  expect(screen.getByRole('heading', { level: 1, name: 'More users' })).toBeInTheDocument();
  expect(screen.getByText('on the same GPUs')).toBeInTheDocument();
  expect(screen.getByRole('button', { name: 'Stop' })).toBeEnabled();
  act(() => mockClient.lose('connection refused'));
  expect(screen.getByText('The load generator is unreachable')).toBeInTheDocument();
});

it('opens a full-screen page over Grafana by its key, and makes Grafana inert meanwhile', async () => {
  const grafana = document.createElement('div');
  grafana.innerHTML = '<nav></nav><div id="grafana-portal-container"></div>';
  document.body.append(grafana);
  const { unmount } = open();
  expect(await screen.findByText('Live')).toBeInTheDocument();
  await userEvent.keyboard('s');
  const stage = await screen.findByText('For the crowd');
  expect(grafana.querySelector('#grafana-portal-container')).toContainElement(stage);
  expect(screen.queryByText('Live')).not.toBeInTheDocument();
  expect(grafana.querySelector('nav')).toHaveAttribute('inert');
  expect(screen.getByTestId('page')).not.toHaveAttribute('data-nav'); // the menu contains its name
  expect(stage.closest('[inert]')).toBeNull();
  unmount();
  expect(grafana.querySelector('nav')).not.toHaveAttribute('inert');
  grafana.remove();
});

describe('an app that is not configured yet', () => {
  const none = { configured: false, canOperate: false };
  beforeEach(() => mockClient.lose('the app does not know its load generator yet'));
  afterEach(() => {
    jest.useRealTimers();
    mockClient.who.mockResolvedValue(admin);
  });

  it.each(['/a/kvbooth-inference-app', '/a/kvbooth-inference-app/stage'])(
    'leads an administrator from %s to the configuration',
    async (address) => {
      mockClient.who.mockResolvedValue({ ...admin, ...none });
      const { container } = open(address);
      expect(await screen.findByText('No load generator configured')).toBeInTheDocument();
      expect(screen.getByText(/^Enter the Load generator URL on the app’s configuration page/)).toBeInTheDocument();
      expect(screen.getByRole('link', { name: 'Open the configuration page' })).toHaveAttribute(
        'href',
        '/plugins/kvbooth-inference-app?page=configuration'
      );
      expect(screen.queryByText('The load generator is unreachable')).not.toBeInTheDocument();
      expect(screen.queryByRole('button', { name: 'Stop' })).not.toBeInTheDocument();
      expect(screen.queryByRole('heading', { level: 2 })).not.toBeInTheDocument();
      expect(await violations(container)).toEqual([]);
    }
  );

  it('names the administrator as the contact for other users, and shows the page once it is configured', async () => {
    jest.useFakeTimers();
    mockClient.who.mockResolvedValue({ ...viewer, ...none });
    open();
    await act(() => jest.advanceTimersByTimeAsync(0));
    expect(screen.getByText(/^Ask a Grafana administrator to enter/)).toBeInTheDocument();
    expect(screen.queryByRole('link')).not.toBeInTheDocument();
    mockClient.who.mockResolvedValue(viewer);
    await act(() => jest.advanceTimersByTimeAsync(ME_RETRY));
    expect(screen.getByRole('heading', { level: 2, name: 'Live' })).toBeInTheDocument();
  });
});
