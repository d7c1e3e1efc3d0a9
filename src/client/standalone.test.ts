import { snapshot } from '../test/fixtures';
import { MAX_PAUSE, RENEW_AFTER, standaloneClient } from './standalone';
import type { LiveState } from './types';

/** A WebSocket whose server is the test. */
class FakeSocket {
  static readonly opened: FakeSocket[] = [];
  onmessage: ((event: { data: string }) => void) | null = null;
  onclose: (() => void) | null = null;
  closed = false;

  constructor(readonly url: string) {
    FakeSocket.opened.push(this);
  }

  static last() {
    return FakeSocket.opened[FakeSocket.opened.length - 1];
  }

  send(data: unknown) {
    this.onmessage?.({ data: typeof data === 'string' ? data : JSON.stringify(data) });
  }

  close() {
    this.closed = true;
  }
}

const fetched = jest.fn<Promise<unknown>, [string, RequestInit]>();

beforeEach(() => {
  jest.useFakeTimers();
  FakeSocket.opened.length = 0;
  Object.assign(global, { WebSocket: FakeSocket, fetch: fetched });
  AbortSignal.timeout = () => new AbortController().signal; // jsdom has none
  fetched.mockReset();
});

afterEach(() => jest.useRealTimers());

function answer(status: number, body = '') {
  return Promise.resolve({ ok: status < 400, status, text: () => Promise.resolve(body) });
}

function follow(client = standaloneClient(), lane = 'main') {
  const states: LiveState[] = [];
  const subscription = client.live(lane).subscribe((state) => states.push(state));
  return { last: () => states[states.length - 1], stop: () => subscription.unsubscribe() };
}

describe('calls', () => {
  it('go to the sidecar that served the page, with its cookie', async () => {
    fetched.mockReturnValue(answer(200, '{"phase":"running"}'));
    const client = standaloneClient();
    const answered = client.write('POST', '/workload/stop?lane=main', { drain: true });
    await expect(answered).resolves.toEqual({ phase: 'running' });
    expect(fetched).toHaveBeenCalledWith(
      '/api/v1/workload/stop?lane=main',
      expect.objectContaining({
        method: 'POST',
        body: '{"drain":true}',
        credentials: 'same-origin',
        headers: { 'Content-Type': 'application/json' },
      })
    );
    await client.get('/settings');
    expect(fetched).toHaveBeenLastCalledWith(
      '/api/v1/settings',
      expect.objectContaining({ method: 'GET', body: undefined, headers: undefined })
    );
  });

  it('reject with the text of the problem', async () => {
    fetched.mockReturnValueOnce(answer(422, '{"detail":"concurrency: 5000 is not allowed","field":"concurrency"}'));
    const client = standaloneClient();
    const problem = { name: 'Problem', status: 422, field: 'concurrency', message: 'concurrency: 5000 is not allowed' };
    await expect(client.get('/x')).rejects.toMatchObject(problem);
    fetched.mockReturnValueOnce(answer(502, '<html>'));
    await expect(client.get('/x')).rejects.toMatchObject({ status: 502, message: expect.stringContaining('502') });
    fetched.mockReturnValueOnce(Promise.reject(new TypeError('Failed to fetch')));
    await expect(client.get('/x')).rejects.toMatchObject({
      status: 0,
      message: expect.stringContaining('No response'),
    });
  });

  it('return the current user, and sign in with the token', async () => {
    const client = standaloneClient();
    fetched.mockReturnValueOnce(answer(200, '{"can_read":true,"can_write":false}'));
    const reader = { login: 'page', role: '', canOperate: false, canConfigure: false, configured: true };
    await expect(client.me()).resolves.toEqual(reader);
    fetched.mockReturnValueOnce(answer(200, '{"can_read":true,"can_write":true}'));
    await expect(client.me()).resolves.toMatchObject({ canOperate: true, canConfigure: true });
    fetched.mockReturnValueOnce(answer(200, '{"can_read":true,"can_write":false,"replay":true}'));
    await expect(client.me()).resolves.toMatchObject({ canOperate: false, replay: true });
    fetched.mockReturnValueOnce(answer(204));
    await client.signIn('open sesame');
    expect(fetched).toHaveBeenLastCalledWith(
      '/api/v1/session',
      expect.objectContaining({ method: 'POST', body: '{"token":"open sesame"}' })
    );
    fetched.mockReturnValueOnce(answer(204));
    await client.signOut();
    expect(fetched).toHaveBeenLastCalledWith('/api/v1/session', expect.objectContaining({ method: 'DELETE' }));
  });
});

describe('live', () => {
  it('has one stream for all subscribers, and closes it after the last', () => {
    const client = standaloneClient();
    const first = follow(client);
    const second = follow(client, 'twin');
    expect(FakeSocket.opened).toHaveLength(1);
    expect(FakeSocket.last().url).toBe('ws://localhost/api/v1/stream');
    expect(first.last()).toEqual({ status: 'loading' });
    FakeSocket.last().send(snapshot());
    expect(second.last()).toMatchObject({ status: 'live', snapshot: { lanes: [{ name: 'main' }] } });
    first.stop();
    expect(FakeSocket.last().closed).toBe(false);
    second.stop();
    expect(FakeSocket.last().closed).toBe(true);
  });

  it('reports a loss at once, and reconnects automatically', () => {
    const { last, stop } = follow();
    FakeSocket.last().send(snapshot());
    FakeSocket.last().onclose?.();
    expect(last()).toMatchObject({ status: 'lost', problem: expect.stringContaining('does not respond') });
    jest.advanceTimersByTime(250);
    FakeSocket.last().send(snapshot());
    expect(FakeSocket.opened).toHaveLength(2);
    expect(last()).toMatchObject({ status: 'live' });
    stop();
  });

  it('reconnects after growing pauses of at most two seconds', () => {
    jest.spyOn(Math, 'random').mockReturnValue(1);
    const { stop } = follow();
    for (const pause of [250, 500, 1000, MAX_PAUSE, MAX_PAUSE]) {
      const before = FakeSocket.opened.length;
      FakeSocket.last().onclose?.();
      jest.advanceTimersByTime(pause - 1);
      expect(FakeSocket.opened).toHaveLength(before);
      jest.advanceTimersByTime(1);
      expect(FakeSocket.opened).toHaveLength(before + 1);
    }
    FakeSocket.last().send(snapshot());
    FakeSocket.last().onclose?.();
    const before = FakeSocket.opened.length;
    jest.advanceTimersByTime(250);
    expect(FakeSocket.opened).toHaveLength(before + 1);
    stop();
    jest.restoreAllMocks();
  });

  it('reopens a silent stream', () => {
    const { last, stop } = follow();
    const first = FakeSocket.last();
    first.send(snapshot());
    jest.advanceTimersByTime(RENEW_AFTER);
    expect(last()).toMatchObject({ status: 'lost', problem: expect.stringContaining('reconnecting') });
    expect(first.closed).toBe(true);
    jest.advanceTimersByTime(250);
    expect(FakeSocket.opened).toHaveLength(2);
    stop();
  });

  it('stops requesting without subscribers', () => {
    const { stop } = follow();
    FakeSocket.last().onclose?.();
    stop();
    jest.advanceTimersByTime(10 * MAX_PAUSE);
    expect(FakeSocket.opened).toHaveLength(1);
  });

  it('ignores messages that are no snapshot', () => {
    const { last, stop } = follow();
    FakeSocket.last().send('<html>');
    expect(last()).toEqual({ status: 'loading' });
    stop();
  });
});
