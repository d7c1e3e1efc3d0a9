import type { Observable } from 'rxjs';

import type { LiveState, Me } from './types';

/** The methods of calls that change something. */
export type WriteMethod = 'POST' | 'PATCH' | 'PUT' | 'DELETE';

/**
 * The one way to the data. Paths are the sidecar's, without its prefix, as in
 * "/workload/start". Calls reject with a Problem.
 */
export interface Client {
  /** The present moment of a lane's workload, once a second; it never fails, but says that it is lost. */
  live(lane: string): Observable<LiveState>;
  /** Reads. */
  get<T>(path: string): Promise<T>;
  /** Changes something, and gives the new state. */
  write<T>(method: WriteMethod, path: string, body: unknown): Promise<T>;
  /** Changes something by the text of a file, as it is. */
  upload<T>(path: string, text: string, contentType: 'application/json' | 'text/csv'): Promise<T>;
  /** Where a browser finds what is read at a path, for a download. */
  address(path: string): string;
  /** Who looks, and what they may do. */
  me(): Promise<Me>;
}

/** The path of a call that belongs to a lane. */
export function lanePath(path: string, lane: string): string {
  return `${path}${path.includes('?') ? '&' : '?'}lane=${encodeURIComponent(lane)}`;
}
