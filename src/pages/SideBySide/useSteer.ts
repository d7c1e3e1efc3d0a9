import { useState } from 'react';

import {
  arrangeTwin,
  startShowcase,
  stopShowcase,
  useClient,
  useMe,
  useTwinTold,
  type Twin,
  type TwinArrangement,
} from '../../client';
import { useAction, type Action } from '../../components/Controls/useAction';
import { readOnlyReason } from '../Shell/StartStop';
import type { Both } from './useBoth';

/** What an operator may do with two lanes, and how it went. */
export interface Steer {
  /** Whether who looks may operate. */
  may: boolean;
  /** Why not; undefined for who may, and while that is not known. */
  why?: string;
  action: Action;
  /** Asks for an arrangement, which waits for the operator's word. */
  ask(arranged: TwinArrangement): void;
  /** The arrangement that waits for it. */
  asked?: TwinArrangement;
  /** The operator's word on it. */
  answer(yes: boolean): void;
  /** Begins a showcase, or another one. */
  show(): void;
  /** Ends the one under way. */
  end(): void;
}

/** Deals modes out and runs showcases, for who may operate. */
export function useSteer({ live, sides }: Both): Steer {
  const client = useClient();
  const me = useMe();
  const told = useTwinTold();
  const action = useAction(live.state.status === 'live' ? live.state.receivedAt : undefined);
  const [asked, setAsked] = useState<TwinArrangement>();
  const may = me?.canOperate === true && sides.a.lane !== undefined && sides.b.lane !== undefined;
  const run = (name: string, call: () => Promise<Twin>) => {
    if (may && action.busy === undefined) {
      void action.run(name, async () => told(await call()));
    }
  };
  return {
    may,
    why: readOnlyReason(me),
    action,
    ask: setAsked,
    asked,
    answer: (yes) => {
      setAsked(undefined);
      if (yes && asked) {
        run('arrange', () => arrangeTwin(client, asked));
      }
    },
    show: () => run('showcase', () => startShowcase(client)),
    end: () => run('end', () => stopShowcase(client)),
  };
}

/** What did not come about, by the name of what was asked for. */
export const failures: Record<string, string> = {
  arrange: 'The modes were not changed',
  showcase: 'The showcase was not started',
  end: 'The showcase was not stopped',
};
