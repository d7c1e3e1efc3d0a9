import type { Event, Snapshot } from './schema';

/** The types of the API. */
export type * from './schema';

/** A change of state: what, when, by whom. */
export type BoothEvent = Event;

/** Who looks at the screen, and what they may do. */
export interface Me {
  login: string;
  /** Grafana's role, empty outside Grafana. */
  role: string;
  canOperate: boolean;
  canConfigure: boolean;
  /** A recording is played, in which nothing can be changed. */
  replay?: boolean;
  /** Whether the address of the load generator is configured. A page that it serves itself always has it. */
  configured: boolean;
}

/** What is known of the present moment. */
export type LiveState =
  | { status: 'loading' }
  | {
      status: 'live';
      snapshot: Snapshot;
      /** When it came, by the browser's clock, in milliseconds since 1970. */
      receivedAt: number;
    }
  | {
      status: 'lost';
      /** When it was lost, in milliseconds since 1970. */
      since: number;
      /** Why, in words that say what to do. */
      problem: string;
      /** The last snapshot, to be shown as old or not at all. */
      last?: Snapshot;
    };
