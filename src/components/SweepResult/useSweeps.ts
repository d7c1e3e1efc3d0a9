import { useCallback } from 'react';
import { useQueryClient } from '@tanstack/react-query';

import {
  listSweeps,
  readSweep,
  useClient,
  usePolled,
  type Polled,
  type Sweep,
  type SweepList,
  type SweepSummary,
} from '../../client';

/** How often the list is asked for, in milliseconds, while a sweep is under way, and while none is. */
const LIST_EVERY = { busy: 5000, idle: 10_000 };

/** How often a sweep is asked for that has not ended, in milliseconds. */
const SWEEP_EVERY = 3000;

/** How long a question rests that had no answer, in milliseconds. */
const RETRY = 3000;

const LIST = 'sweeps';

/** What can be asked of sweeps, and what has been. */
export function useSweepList(): Polled<SweepList> {
  const client = useClient();
  const next = ({ value, problem }: Polled<SweepList>) =>
    problem ? RETRY : value?.sweeps.some(({ state }) => !hasEnded(state)) ? LIST_EVERY.busy : LIST_EVERY.idle;
  return usePolled(() => listSweeps(client), next, LIST);
}

/** A sweep with all that it has measured; one that has ended is asked for once, and none where the id is undefined. */
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

/** Gives a function that asks anew for the list and for a sweep, as after a change. */
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

/** Whether nothing more will come of a sweep. */
export function hasEnded(state: SweepSummary['state']): boolean {
  return state === 'done' || state === 'cancelled' || state === 'failed';
}
