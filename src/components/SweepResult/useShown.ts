import { useLive, type Live, type Problem, type Sweep, type SweepSummary } from '../../client';
import { chosenOf } from './model';
import { useSweep, useSweepList } from './useSweeps';

/** The sweep in view. */
export interface Shown {
  live: Live;
  /** The sweeps of the lane, newest first; undefined until they are known. */
  all?: SweepSummary[];
  /** The selected sweep; undefined where there is none. */
  chosen?: SweepSummary;
  /** Its measurements; undefined until they are loaded. */
  sweep?: Sweep;
  /** Why the last request failed. The view is then of the time asOf. */
  problem?: Problem;
  /** The time of the view, in milliseconds since 1970. */
  asOf?: number;
}

/** Polls the sweep with an id, or a lane's newest without one. One in progress grows. */
export function useShown(lane: string, id: string): Shown {
  const live = useLive(lane);
  const list = useSweepList();
  const chosen = list.value && chosenOf(list.value.sweeps, lane, id);
  const detail = useSweep(chosen?.id);
  const sweep = detail.value && withProgress(detail.value, live);
  return {
    live,
    all: list.value?.sweeps.filter((one) => one.lane === lane),
    chosen,
    sweep,
    problem: detail.problem ?? list.problem,
    asOf: detail.at ?? list.at,
  };
}

/** Returns a sweep with the progress that the snapshot reports every second. */
function withProgress(sweep: Sweep, { lane }: Live): Sweep {
  const now = lane?.state.sweep;
  return now?.id === sweep.id && sweep.state === 'running' ? { ...sweep, progress: now.progress } : sweep;
}
