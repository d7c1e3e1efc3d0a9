import { ofLane, useLive, useTwin, type Live, type Polled, type Twin, type TwinSide } from '../../client';
import { sideNames, type SideKey } from '../../components/Twin';
import { lastKnown, type Known } from '../../lib/known';
import { LANE, TWIN } from '../lane';
import { useHistory } from '../Stage/useHistory';
import type { Histories } from './curves';

/** Two lanes that run the same conversations. */
export interface Both {
  /** The state of the first lane. Its snapshots contain both lanes. */
  live: Live;
  sides: Record<SideKey, Live>;
  /** Undefined until it is known, and where there is one lane. */
  known?: Record<SideKey, Known>;
  /** The names of the sides. */
  names: Record<SideKey, string>;
  histories: Histories;
  /** The comparison of the two lanes. */
  twin: Polled<Twin>;
}

/** Subscribes to both lanes. Where there is one, no further requests are made. */
export function useBoth(): Both {
  const live = useLive(LANE);
  const other = ofLane(live, TWIN);
  const known = knownOfBoth(live);
  const twin = useTwin(live.lane !== undefined && other.lane !== undefined);
  const histories = { a: useHistory(live), b: useHistory(other, TWIN) };
  return {
    live,
    sides: { a: live, b: other },
    known,
    names: known ? sideNames({ a: side(known.a), b: side(known.b) }) : { a: LANE, b: TWIN },
    histories,
    twin,
  };
}

function knownOfBoth(live: Live): Both['known'] {
  const [a, b] = [lastKnown(live, LANE), lastKnown(live, TWIN)];
  return a && b && { a, b };
}

function side({ lane: { name, target, state } }: Known): TwinSide {
  return { lane: name, target: target.url, arm: state.arm, mode: state.mode, speculation: state.speculation };
}
