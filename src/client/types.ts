import type { Event, Snapshot } from './schema';

/** The types of the API. */
export type * from './schema';

/** A change of state: its time, text and actor. */
export type BoothEvent = Event;

/** The current user and their permissions. */
export interface Me {
  login: string;
  /** Grafana's role, empty outside Grafana. */
  role: string;
  canOperate: boolean;
  canConfigure: boolean;
  /** Whether a recording is played, in which nothing can be changed. */
  replay?: boolean;
  /** Whether the address of the load generator is configured. A page that it serves itself always has it. */
  configured: boolean;
}

/** The live state of the load generator. */
export type LiveState =
  | { status: 'loading' }
  | {
      status: 'live';
      snapshot: Snapshot;
      /** The time of arrival by the browser's clock, in milliseconds since 1970. */
      receivedAt: number;
    }
  | {
      status: 'lost';
      /** The time of the loss, in milliseconds since 1970. */
      since: number;
      /** The reason, with what to do. */
      problem: string;
      /** The last snapshot, to be shown as old or not at all. */
      last?: Snapshot;
    };
