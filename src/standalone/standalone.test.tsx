import { act, render, screen, waitFor } from '@testing-library/react';
import userEvent from '@testing-library/user-event';

import { Problem, type Session } from '../client';
import type { StandaloneClient } from '../client/standalone';
import { FakeClient, settings } from '../test/fixtures';
import { answered } from '../test/settled';
import { FETCH_AFTER } from './Layout';
import { Standalone } from './Standalone';
import { SESSION_EVERY } from './useSession';

/** The sidecar's session endpoint as the test answers it. */
class FakeStandaloneClient extends FakeClient implements StandaloneClient {
  readonly sessions = jest.fn<Promise<Session>, []>();
  readonly signIns = jest.fn<Promise<void>, [string]>(() => Promise.resolve());
  readonly signOuts = jest.fn<Promise<void>, []>(() => Promise.resolve());
  session = () => this.sessions();
  signIn = (token: string) => this.signIns(token);
  signOut = () => this.signOuts();
}

let mockClient: FakeStandaloneClient;
let mockMade = 0;

jest.mock('../client/standalone', () => ({
  standaloneClient: () => {
    mockMade++;
    const { live, get, write, me, session, signIn, signOut } = mockClient;
    return { live, get, write, me, session, signIn, signOut };
  },
}));
jest.mock('../lib/useNow', () => ({ useNow: () => Date.now(), useAge: () => 0 }));
jest.mock('../pages/registry', () => ({
  pages: [
    {
      id: 'dashboard',
      path: '',
      title: 'Dashboard',
      icon: 'apps',
      load: () => Promise.resolve({ default: () => <h2>Live</h2> }),
    },
    { id: 'guide', path: 'guide', title: 'Guide', icon: 'apps', load: () => mockGuide() },
  ],
}));

const mockGuide = jest.fn(() => Promise.reject(new Error('lost')));

const open: Session = { token_required: false, authenticated: false, can_read: true, can_write: true };
const readOnly: Session = { token_required: true, authenticated: false, can_read: true, can_write: false };
const closed: Session = { ...readOnly, can_read: false };
const signedIn: Session = { token_required: true, authenticated: true, can_read: true, can_write: true };

beforeEach(() => {
  mockClient = new FakeStandaloneClient();
  mockMade = 0;
  localStorage.clear();
  window.history.replaceState(null, '', '/');
});

async function show(session: Session | Error) {
  if (session instanceof Error) {
    mockClient.sessions.mockRejectedValue(session);
  } else {
    mockClient.sessions.mockResolvedValue(session);
  }
  const result = render(<Standalone />);
  await waitFor(() => expect(mockClient.sessions).toHaveBeenCalled());
  await answered();
  return result;
}

const button = (name: string) => screen.getByRole('button', { name });
const token = () => screen.getByLabelText(/Token/, { selector: 'input' });

describe('without a token', () => {
  it('allows every user, without sign-in', async () => {
    await show(open);
    expect(await screen.findByRole('heading', { name: 'Live' })).toBeInTheDocument();
    act(() => mockClient.show({}, { settings: settings({ title: 'More users' }) }));
    expect(document.title).toBe('Dashboard · More users');
    expect(button('Stop')).toBeEnabled();
    expect(screen.queryByRole('button', { name: 'Enter token' })).not.toBeInTheDocument();
    expect(screen.queryByRole('button', { name: 'Sign out' })).not.toBeInTheDocument();
  });

  it('shows its pages, and the loss, without an answer', async () => {
    await show(new Problem(0, 'no answer'));
    expect(await screen.findByRole('heading', { name: 'Live' })).toBeInTheDocument();
    act(() => mockClient.lose());
    expect(screen.getByText('The load generator is unreachable')).toBeInTheDocument();
  });
});

it('fetches the other pages after the first, and ignores failures', async () => {
  jest.useFakeTimers();
  try {
    mockGuide.mockClear();
    mockClient.sessions.mockResolvedValue(open);
    render(<Standalone />);
    await act(() => jest.advanceTimersByTimeAsync(0));
    await act(() => jest.advanceTimersByTimeAsync(FETCH_AFTER - 1));
    expect(screen.getByRole('heading', { name: 'Live' })).toBeInTheDocument();
    expect(mockGuide).not.toHaveBeenCalled();
    await act(() => jest.advanceTimersByTimeAsync(1));
    expect(mockGuide).toHaveBeenCalledTimes(1);
    expect(screen.getByRole('heading', { name: 'Live' })).toBeInTheDocument();
  } finally {
    jest.useRealTimers();
  }
});

describe('with a token', () => {
  it('reports why a token is refused, or why signing out failed', async () => {
    await show(closed);
    mockClient.signIns.mockRejectedValueOnce(new Problem(429, 'too many wrong tokens; try again in 7 s'));
    await userEvent.type(token(), 'right{Enter}');
    expect(await screen.findByText('too many wrong tokens; try again in 7 s')).toBeInTheDocument();
    const made = mockMade;
    mockClient.sessions.mockResolvedValue(signedIn);
    await userEvent.click(button('Enter'));
    mockClient.signOuts.mockRejectedValueOnce(new Problem(0, 'no answer'));
    await userEvent.click(await screen.findByRole('button', { name: 'Sign out' }));
    expect(await screen.findByRole('alert')).toHaveTextContent('Sign-out failed: no answer');
    expect(mockMade).toBe(made + 1);
  });

  it('detects that a session has ended', async () => {
    jest.useFakeTimers();
    try {
      mockClient.sessions.mockResolvedValue(signedIn);
      render(<Standalone />);
      await act(() => jest.advanceTimersByTimeAsync(0));
      expect(screen.getByRole('navigation')).toBeInTheDocument();
      mockClient.sessions.mockRejectedValueOnce(new Problem(0, 'no answer')); // does not concern the session
      await act(() => jest.advanceTimersByTimeAsync(SESSION_EVERY));
      expect(screen.getByRole('navigation')).toBeInTheDocument();
      mockClient.sessions.mockResolvedValue(closed);
      await act(() => jest.advanceTimersByTimeAsync(SESSION_EVERY));
      expect(screen.queryByRole('navigation')).not.toBeInTheDocument();
    } finally {
      jest.useRealTimers();
    }
  });
});

describe('the colors', () => {
  it('are the system’s, unless others were chosen, which are remembered', async () => {
    const { unmount } = await show(open);
    await userEvent.click(await screen.findByRole('button', { name: 'Switch to light colors' }));
    expect(button('Switch to dark colors')).toBeInTheDocument();
    unmount();
    await show(open);
    expect(await screen.findByRole('button', { name: 'Switch to dark colors' })).toBeInTheDocument();
  });

  it('can be switched where nothing may be stored', async () => {
    const storage = jest.spyOn(Storage.prototype, 'setItem').mockImplementation(() => {
      throw new Error('denied');
    });
    await show(open);
    await userEvent.click(await screen.findByRole('button', { name: 'Switch to light colors' }));
    expect(button('Switch to dark colors')).toBeInTheDocument();
    storage.mockRestore();
  });
});
