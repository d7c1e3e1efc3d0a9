import React from 'react';
import { act, render, screen } from '@testing-library/react';

import { ClientProvider } from '../client';
import { FakeClient } from '../test/fixtures';
import { Dashboard } from './Dashboard';

jest.mock('@grafana/runtime', () => ({
  ...jest.requireActual('@grafana/runtime'),
  PluginPage: ({ pageNav, children }: React.PropsWithChildren<{ pageNav: { text: string } }>) => (
    <main>
      <h1>{pageNav.text}</h1>
      {children}
    </main>
  ),
}));

jest.mock('../lib/useNow', () => ({ useNow: () => Date.now(), useAge: () => 0 }));

describe('the dashboard page', () => {
  it('shows controls and comparison under the title of the booth', async () => {
    const client = new FakeClient();
    render(
      <ClientProvider client={client}>
        <Dashboard />
      </ClientProvider>
    );
    expect(screen.getByRole('heading', { name: 'Dashboard' })).toBeInTheDocument();
    act(() => client.show());
    await act(() => Promise.resolve());
    expect(screen.getByRole('heading', { name: 'Serve more users on the same GPUs' })).toBeInTheDocument();
    expect(screen.getByRole('button', { name: 'Stop' })).toBeEnabled();
    expect(screen.getAllByRole('table')).toHaveLength(2);
  });
});
