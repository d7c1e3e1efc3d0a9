import { useCallback } from 'react';
import { useQueryClient } from '@tanstack/react-query';

import {
  listSweeps,
  readSweep,
  useClient,
  useLive,
  usePolled,
  type Live,
  type Polled,
  type Problem,
  type Sweep,
  type SweepList,
  type SweepSummary,
} from '../../client';
import { chosenOf } from './model';

/** The intervals between requests for the list, in milliseconds, during a sweep and otherwise. */
const LIST_EVERY = { busy: 5000, idle: 10_000 };

/** The interval between requests for a sweep that has not ended, in milliseconds. */
const SWEEP_EVERY = 3000;

/** The pause after a failed request, in milliseconds. */
const RETRY = 3000;

const LIST = 'sweeps';

/** The limits of sweeps, and the list of them. */
export function useSweepList(): Polled<SweepList> {
  const client = useClient();
  const next = ({ value, problem }: Polled<SweepList>) =>
    problem ? RETRY : value?.sweeps.some(({ state }) => !hasEnded(state)) ? LIST_EVERY.busy : LIST_EVERY.idle;
  return usePolled(() => listSweeps(client), next, LIST);
}

/** Returns a sweep with all measurements. One that has ended is requested once, and none where the id is undefined. */
export function useSweep(id: string | undefined): Polled<Sweep> {
  const client = useClient();
  const next = ({ value, problem }: Polled<Sweep>) => {
    if (problem) {
      return problem.status === 404 ? false : RETRY;
    }
    return value && hasEnded(value.state) ? false : SWEEP_EVERY;
  };
  return usePolled(id === undefined ? undefined : () => readSweep(client, id), next, keyOf(id ?? ''));
}

/** Returns a function that requests the list and a sweep again, for example after a change. */
export function useRenewSweeps(): (id?: string) => void {
  const queries = useQueryClient();
  return useCallback(
    (id) => {
      void queries.invalidateQueries({ queryKey: [LIST] });
      if (id !== undefined) {
        void queries.invalidateQueries({ queryKey: [keyOf(id)] });
      }
    },
    [queries]
  );
}

function keyOf(id: string): string {
  return `sweep ${id}`;
}

/** Whether a sweep has ended. */
export function hasEnded(state: SweepSummary['state']): boolean {
  return state === 'done' || state === 'cancelled' || state === 'failed';
}

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
  return {
    live,
    all: list.value?.sweeps.filter((one) => one.lane === lane),
    chosen,
    sweep: detail.value && withNewest(detail.value, live),
    problem: detail.problem ?? list.problem,
    asOf: detail.at ?? list.at,
  };
}

/** Returns a sweep that has not ended in the state that the snapshot reports every second. */
export function withNewest(sweep: Sweep, { lane }: Live): Sweep {
  const now = lane?.state.sweep;
  return now?.id === sweep.id && !hasEnded(sweep.state) ? { ...sweep, ...now } : sweep;
}
