import { NEVER, of, Subject, throwError, type Observable } from 'rxjs';

import {
  LiveChannelConnectionState,
  LiveChannelEventType,
  type LiveChannelAddress,
  type LiveChannelEvent,
} from '@grafana/data';
import { getBackendSrv, getGrafanaLiveSrv } from '@grafana/runtime';

import { snapshot } from '../test/fixtures';
import { grafanaClient, RENEW_AFTER, RETRY_AFTER } from './grafana';
import { STALE_AFTER } from './live';
import type { LiveState } from './types';

jest.mock('@grafana/runtime', () =>
  Object.create(jest.requireActual('@grafana/runtime'), {
    getBackendSrv: { value: jest.fn() },
    getGrafanaLiveSrv: { value: jest.fn() },
  })
);

type Event = LiveChannelEvent<unknown>;

const fetched = jest.fn<Observable<unknown>, [unknown]>();
const streamed = jest.fn<Observable<Event>, [LiveChannelAddress]>();

beforeEach(() => {
  jest.useFakeTimers();
  jest.resetAllMocks();
  jest.mocked(getBackendSrv).mockReturnValue({ fetch: fetched } as never);
  jest.mocked(getGrafanaLiveSrv).mockReturnValue({ getStream: streamed } as never);
});

afterEach(() => jest.useRealTimers());

/** Each test uses a lane of its own, because subscriptions are shared by lane. */
let lanes = 0;

function follow(lane = `lane${++lanes}`) {
  const states: LiveState[] = [];
  const subscription = grafanaClient.live(lane).subscribe((state) => states.push(state));
  return { lane, states, last: () => states[states.length - 1], stop: () => subscription.unsubscribe() };
}

function message(body: unknown): Event {
  return { type: LiveChannelEventType.Message, message: body };
}

function status(state: LiveChannelConnectionState, error?: unknown): Event {
  return { type: LiveChannelEventType.Status, id: 'x', timestamp: 1, state, error };
}

describe('calls', () => {
  it('go to the resources of the app, without Grafana’s error popups', async () => {
    fetched.mockReturnValue(of({ data: { phase: 'running' } }));
    const answer = grafanaClient.write('POST', '/workload/stop?lane=main', { drain: true });
    await expect(answer).resolves.toEqual({ phase: 'running' });
    expect(fetched).toHaveBeenCalledWith({
      url: '/api/plugins/kvbooth-inference-app/resources/workload/stop?lane=main',
      method: 'POST',
      data: { drain: true },
      headers: { 'Content-Type': 'application/json' },
      showErrorAlert: false,
      showSuccessAlert: false,
    });
    await grafanaClient.get('/settings');
    expect(fetched).toHaveBeenLastCalledWith(
      expect.objectContaining({ method: 'GET', data: undefined, headers: undefined })
    );
    await grafanaClient.me();
    expect(fetched).toHaveBeenLastCalledWith(
      expect.objectContaining({ url: expect.stringMatching(/\/resources\/me$/) })
    );
  });

  it('reject with the text of the problem', async () => {
    const data = { detail: 'concurrency: 5000 is not allowed', field: 'concurrency' };
    fetched.mockReturnValue(throwError(() => ({ status: 422, statusText: 'x', config: {}, data })));
    const problem = { name: 'Problem', status: 422, field: data.field, message: data.detail };
    await expect(grafanaClient.get('/x')).rejects.toMatchObject(problem);
    fetched.mockReturnValue(throwError(() => new Error('Failed to fetch')));
    await expect(grafanaClient.get('/x')).rejects.toMatchObject({ status: 0, message: 'Failed to fetch' });
  });
});

describe('live', () => {
  it('shares one subscription per lane, and replays the last state to a late subscriber', () => {
    const events = new Subject<Event>();
    streamed.mockReturnValue(events);
    const first = follow();
    events.next(message(snapshot()));
    const second = follow(first.lane);
    expect(streamed).toHaveBeenCalledTimes(1);
    expect(streamed).toHaveBeenCalledWith({
      scope: 'plugin',
      namespace: 'kvbooth-inference-app',
      stream: 'kvbooth-inference-app',
      path: `${first.lane}/snapshot`,
    });
    expect(second.last()).toMatchObject({ status: 'live' });
    first.stop();
    expect(events.observed).toBe(true);
    second.stop();
    expect(events.observed).toBe(false);
  });

  it('does not replay an old snapshot as live to a late subscriber', () => {
    const events = new Subject<Event>();
    streamed.mockReturnValue(events);
    const first = follow();
    events.next(message(snapshot()));
    jest.advanceTimersByTime(STALE_AFTER - 100);
    const second = follow(first.lane);
    jest.advanceTimersByTime(100);
    expect(second.last()).toMatchObject({ status: 'lost' });
    first.stop();
    second.stop();
  });

  it('reports a loss with the message of the backend', () => {
    streamed.mockReturnValue(of(message({ lost: true, since: '2026-11-20T10:00:00Z', problem: 'wrong token' })));
    const { last, stop } = follow();
    expect(last()).toMatchObject({ status: 'lost', since: Date.parse('2026-11-20T10:00:00Z'), problem: 'wrong token' });
    stop();
  });

  it('reports that the connection to Grafana is lost', () => {
    const events = new Subject<Event>();
    streamed.mockReturnValue(events);
    const { last, stop } = follow();
    events.next(status(LiveChannelConnectionState.Connected));
    expect(last()).toEqual({ status: 'loading' });
    events.next(status(LiveChannelConnectionState.Disconnected));
    expect(last()).toMatchObject({ status: 'lost', problem: expect.stringContaining('Connection to Grafana') });
    stop();
  });

  it('subscribes again on a new path after a failure', () => {
    streamed.mockReturnValueOnce(of(status(LiveChannelConnectionState.Connected, { message: 'Expired' })));
    streamed.mockReturnValueOnce(throwError(() => 'broken'));
    streamed.mockReturnValue(NEVER);
    const { lane, last, stop } = follow();
    expect(last()).toMatchObject({ status: 'lost', problem: 'Grafana Live: Expired' });
    jest.advanceTimersByTime(RETRY_AFTER);
    expect(last()).toMatchObject({ problem: 'Grafana Live: broken' });
    jest.advanceTimersByTime(RETRY_AFTER);
    const paths = streamed.mock.calls.map(([address]) => address.path);
    expect(paths[0]).toBe(`${lane}/snapshot`);
    expect(paths[1]).toMatch(/^lane\d+\/snapshot\/[a-z0-9]+$/);
    expect(new Set(paths).size).toBe(3);
    stop();
  });

  it('subscribes again when the channel is silent, and stops without subscribers', () => {
    streamed.mockReturnValue(NEVER);
    const { last, stop } = follow();
    jest.advanceTimersByTime(RENEW_AFTER);
    expect(last()).toMatchObject({ problem: expect.stringContaining('no data on the channel') });
    jest.advanceTimersByTime(RETRY_AFTER);
    expect(streamed).toHaveBeenCalledTimes(2);
    stop();
    jest.advanceTimersByTime(10 * RENEW_AFTER);
    expect(streamed).toHaveBeenCalledTimes(2);
  });

  it('reports that Grafana Live is switched off', () => {
    jest.mocked(getGrafanaLiveSrv).mockReturnValue(undefined as never);
    const { last, stop } = follow();
    expect(last()).toMatchObject({ status: 'lost', problem: expect.stringContaining('live.max_connections') });
    stop();
  });
});
