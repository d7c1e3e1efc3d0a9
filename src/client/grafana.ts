import {
  catchError,
  defer,
  filter,
  lastValueFrom,
  map,
  Observable,
  of,
  repeat,
  shareReplay,
  takeWhile,
  timeout,
  TimeoutError,
} from 'rxjs';

import {
  isLiveChannelMessageEvent,
  isLiveChannelStatusEvent,
  LiveChannelConnectionState,
  LiveChannelScope,
  type LiveChannelAddress,
  type LiveChannelEvent,
} from '@grafana/data';
import { config, getBackendSrv, getGrafanaLiveSrv, isFetchError } from '@grafana/runtime';

import type { Client, WriteMethod } from './client';
import { toLiveState, type Message } from './live';
import { toProblem } from './problem';
import type { LiveState, Me, Snapshot } from './types';

/** The app's id, a part of the paths of its channels and resources. */
export const PLUGIN_ID = 'kvbooth-inference-app';

/** Returns the client inside Grafana, which uses the resources and Live channels of the app's backend. */
export const grafanaClient: Client = {
  live: follow,
  get: (path) => askGrafana('GET', resource(path)),
  write: (method, path, body) => askGrafana(method, resource(path), body),
  upload: (path, text, contentType) => askGrafana('POST', resource(path), text, contentType),
  address: (path) => `${config.appSubUrl}${resource(path)}`,
  me: () => askGrafana<Me>('GET', resource('/me')),
};

function resource(path: string): string {
  return `/api/plugins/${PLUGIN_ID}/resources${path}`;
}

/** Calls Grafana's API. Data is encoded as JSON, but a string is sent unchanged. It rejects with a Problem. */
export async function askGrafana<T>(
  method: 'GET' | WriteMethod,
  url: string,
  data?: unknown,
  contentType = 'application/json'
): Promise<T> {
  const headers = data === undefined ? undefined : { 'Content-Type': contentType };
  const options = { url, method, data, headers, showErrorAlert: false, showSuccessAlert: false };
  try {
    return (await lastValueFrom(getBackendSrv().fetch<T>(options))).data;
  } catch (error) {
    throw isFetchError(error) ? toProblem(error.status, error.data) : toProblem(0, error);
  }
}

/** The message that the backend publishes on a snapshot channel once a second. */
type Wire = Snapshot | { lost: true; since: string; problem: string };

/** The pause before a channel that has ended is subscribed to again, in milliseconds. */
export const RETRY_AFTER = 1000;

/**
 * The longest silence of a channel before it is subscribed to anew, in milliseconds. The backend publishes every
 * second, also during a loss, so a silent channel is faulty.
 */
export const RENEW_AFTER = 6000;

const shared = new Map<string, Observable<LiveState>>();

/** One subscription serves all components that follow a lane. A late subscriber receives the last state at once. */
function follow(lane: string): Observable<LiveState> {
  let state = shared.get(lane);
  if (!state) {
    let attempts = 0;
    const messages = defer(() => channel(lane, attempts++)).pipe(repeat({ delay: RETRY_AFTER }));
    state = toLiveState(messages).pipe(shareReplay({ bufferSize: 1, refCount: true }));
    shared.set(lane, state);
  }
  return state;
}

/** The messages of a channel until it fails, falls silent or ends. */
function channel(lane: string, attempt: number): Observable<Message> {
  const live = getGrafanaLiveSrv();
  if (!live) {
    return of({
      problem: 'Grafana Live is disabled. An administrator must enable it (setting live.max_connections).',
    });
  }
  return live.getStream<Wire>(address(lane, attempt)).pipe(
    timeout({ each: RENEW_AFTER }),
    takeWhile((event) => !failure(event), true),
    map(toMessage),
    filter((message) => message !== undefined),
    catchError((error: unknown) => of<Message>({ problem: `Grafana Live: ${messageOf(error)}` }))
  );
}

/**
 * A path that has ended can return a stale error to a new subscriber, so each further attempt has a new path. Since
 * Grafana 12.4, the namespace of an address is called stream.
 */
function address(lane: string, attempt: number): LiveChannelAddress {
  const path = `${lane}/snapshot${attempt === 0 ? '' : `/${nonce()}`}`;
  const channel = { scope: LiveChannelScope.Plugin, namespace: PLUGIN_ID, stream: PLUGIN_ID, path };
  return channel;
}

function nonce(): string {
  return Math.random().toString(36).slice(2);
}

function failure(event: LiveChannelEvent<Wire>): unknown {
  return isLiveChannelStatusEvent(event) ? event.error : undefined;
}

function toMessage(event: LiveChannelEvent<Wire>): Message | undefined {
  if (isLiveChannelMessageEvent(event)) {
    const wire = event.message;
    return 'lost' in wire ? { problem: wire.problem, since: Date.parse(wire.since) } : { snapshot: wire };
  }
  if (failure(event)) {
    return { problem: `Grafana Live: ${messageOf(failure(event))}` };
  }
  if (isLiveChannelStatusEvent(event) && event.state === LiveChannelConnectionState.Disconnected) {
    return { problem: 'Connection to Grafana lost. It reconnects automatically.' };
  }
  return undefined;
}

function messageOf(error: unknown): string {
  if (error instanceof TimeoutError) {
    return 'no data on the channel; reconnecting.';
  }
  if (typeof error === 'object' && error !== null && 'message' in error) {
    return String(error.message);
  }
  return String(error);
}
