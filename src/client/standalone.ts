import { catchError, defer, Observable, of, repeat, shareReplay, tap, timeout, TimeoutError, timer } from 'rxjs';

import type { Client, WriteMethod } from './client';
import { toLiveState, type Message } from './live';
import { toProblem } from './problem';
import type { Session, Snapshot } from './types';

const PREFIX = '/api/v1';

/** The client of a page that the sidecar itself serves. */
export interface StandaloneClient extends Client {
  /** Returns the current user's permissions. */
  session(): Promise<Session>;
  /** Exchanges the token for a cookie. It rejects with a Problem where the token is wrong. */
  signIn(token: string): Promise<void>;
  signOut(): Promise<void>;
}

/** Returns a client of the sidecar that served the page. All users of one client share one stream. */
export function standaloneClient(): StandaloneClient {
  const state = toLiveState(snapshots()).pipe(shareReplay({ bufferSize: 1, refCount: true }));
  const session = () => call<Session>('GET', '/session');
  return {
    live: () => state,
    get: (path) => call('GET', path),
    write: (method, path, body) => call(method, path, JSON.stringify(body)),
    upload: (path, text, contentType) => call('POST', path, text, contentType),
    address: (path) => PREFIX + path,
    me: async () => {
      const { can_write: may, replay } = await session();
      return {
        login: 'page',
        role: '',
        canOperate: may,
        canConfigure: may,
        configured: true,
        ...(replay && { replay }),
      };
    },
    session,
    signIn: (token) => call('POST', '/session', JSON.stringify({ token })),
    signOut: () => call('DELETE', '/session'),
  };
}

/** The timeout of a call, in milliseconds: longer than any answer takes. */
const CALL_TIMEOUT = 15_000;

async function call<T>(
  method: 'GET' | WriteMethod,
  path: string,
  body?: string,
  contentType = 'application/json'
): Promise<T> {
  const answer = await fetch(PREFIX + path, {
    method,
    credentials: 'same-origin',
    headers: body === undefined ? undefined : { 'Content-Type': contentType },
    body,
    signal: AbortSignal.timeout(CALL_TIMEOUT),
  }).catch(() => {
    throw toProblem(0, undefined); // the browsers' own texts differ
  });
  const given: unknown = await answer.text().then(parse);
  if (!answer.ok) {
    throw toProblem(answer.status, given);
  }
  return given as T;
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

/** The longest pause between two attempts to connect, in milliseconds. */
export const MAX_PAUSE = 2000;

/** The longest silence of a stream before it is reopened, in milliseconds: the sidecar sends every second. */
export const RENEW_AFTER = 6000;

/** The snapshots, while there is a subscriber. A stream that ends is opened again after growing pauses. */
function snapshots(): Observable<Message> {
  let failures = 0;
  return defer(stream).pipe(
    timeout({ each: RENEW_AFTER }),
    tap(() => (failures = 0)),
    catchError((error: unknown) => of<Message>({ problem: messageOf(error) })),
    repeat({ delay: () => timer(pause(failures++)) })
  );
}

/**
 * Returns a quarter of a second, doubled with each attempt and reduced at random, so that not all pages reconnect at
 * once.
 */
function pause(failures: number): number {
  return Math.min(MAX_PAUSE, 250 * 2 ** failures) * (0.5 + Math.random() / 2);
}

/** The snapshots of one WebSocket. It fails when the socket closes. */
function stream(): Observable<Message> {
  return new Observable<Message>((subscriber) => {
    const socket = new WebSocket(`${location.origin.replace(/^http/, 'ws')}${PREFIX}/stream`);
    socket.onmessage = ({ data }: MessageEvent<string>) => {
      const snapshot = parse(data) as Snapshot | undefined;
      if (snapshot) {
        subscriber.next({ snapshot });
      }
    };
    socket.onclose = () => subscriber.error(new Error('closed'));
    return () => {
      socket.onclose = null;
      socket.close();
    };
  });
}

function messageOf(error: unknown): string {
  return error instanceof TimeoutError
    ? 'No data from the load generator; reconnecting.'
    : 'The load generator does not respond. The page reconnects automatically.';
}
