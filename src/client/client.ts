import type { Observable } from 'rxjs';

import type { LiveState, Me } from './types';

/** The methods of calls that change something. */
export type WriteMethod = 'POST' | 'PATCH' | 'PUT' | 'DELETE';

/**
 * Client is the one way to the data. Paths are the sidecar's, without its prefix, such as "/workload/start". Calls
 * reject with a Problem.
 */
export interface Client {
  /** Calls back with a lane's state once a second. It never fails: a lost connection is a state of its own. */
  live(lane: string): Observable<LiveState>;
  get<T>(path: string): Promise<T>;
  /** Changes something, and returns the new state. */
  write<T>(method: WriteMethod, path: string, body: unknown): Promise<T>;
  /** Changes something by the text of a file, which is sent unchanged. */
  upload<T>(path: string, text: string, contentType: 'application/json' | 'text/csv'): Promise<T>;
  /** Returns the address of a path for a download by the browser. */
  address(path: string): string;
  /** Returns the current user's name and permissions. */
  me(): Promise<Me>;
}

/** Returns the path of a call that belongs to a lane. */
export function lanePath(path: string, lane: string): string {
  return `${path}${path.includes('?') ? '&' : '?'}lane=${encodeURIComponent(lane)}`;
}
