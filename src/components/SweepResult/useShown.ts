import { useLive, type Live, type Problem, type Sweep, type SweepSummary } from '../../client';
import { chosenOf } from './model';
import { useSweep, useSweepList } from './useSweeps';

/** What is known of the sweep that is shown. */
export interface Shown {
  live: Live;
  /** The sweeps of the lane, newest first; undefined until they are known. */
  all?: SweepSummary[];
  /** The one that is meant; undefined where there is none. */
  chosen?: SweepSummary;
  /** What it has measured; undefined until that is known. */
  sweep?: Sweep;
  /** Why there was no answer of late; what is shown is then of the time asOf. */
  problem?: Problem;
  /** When what is shown came, in milliseconds since 1970. */
  asOf?: number;
}

/** Follows the sweep with an id, or a lane's newest where it is empty: one that is in progress grows. */
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

/** A sweep with the progress that the snapshot reports every second. */
function withProgress(sweep: Sweep, { lane }: Live): Sweep {
  const now = lane?.state.sweep;
  return now?.id === sweep.id && sweep.state === 'running' ? { ...sweep, progress: now.progress } : sweep;
}
