import {
  arrangeTwin,
  startShowcase,
  stopShowcase,
  useClient,
  useMe,
  useSetTwin,
  type Twin,
  type TwinArrangement,
} from '../../client';
import { useConfirm, type Confirm } from '../../components/Confirm';
import { useAction, type Action } from '../../components/Controls/useAction';
import { arrivalOf } from '../../lib/known';
import { readOnlyReason } from '../Shell/StartStop';
import { arrangeQuestion } from './arrangements';
import type { Both } from './useBoth';

/** An operator's actions on two lanes, and their results. */
export interface Steer {
  /** Whether the user may operate. */
  may: boolean;
  /** Why not; undefined with permission, and while that is not known. */
  why?: string;
  action: Action;
  /** Requests an arrangement, which the operator confirms. */
  ask(arranged: TwinArrangement): void;
  /** The open confirmation. */
  confirm: Confirm;
  /** Begins a showcase, also after another one. */
  show(): void;
  /** Ends the current showcase. */
  end(): void;
}

/** Assigns modes and runs showcases, for operators. */
export function useSteer({ live, sides }: Both): Steer {
  const client = useClient();
  const me = useMe();
  const setTwin = useSetTwin();
  const action = useAction(arrivalOf(live));
  const confirm = useConfirm();
  const may = me?.canOperate === true && sides.a.lane !== undefined && sides.b.lane !== undefined;
  const run = (name: string, call: () => Promise<Twin>) => {
    if (may && action.busy === undefined) {
      void action.run(name, async () => setTwin(await call()));
    }
  };
  return {
    may,
    why: readOnlyReason(me),
    action,
    ask: (arranged) =>
      confirm.before(arrangeQuestion(arranged), () => run('arrange', () => arrangeTwin(client, arranged))),
    confirm,
    show: () => run('showcase', () => startShowcase(client)),
    end: () => run('end', () => stopShowcase(client)),
  };
}

/** The failures, by the name of the request. */
export const failures: Record<string, string> = {
  arrange: 'The modes were not changed',
  showcase: 'The showcase was not started',
  end: 'The showcase was not stopped',
};
