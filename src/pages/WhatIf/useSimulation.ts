import { useEffect, useState } from 'react';
import { useQuery, useQueryClient } from '@tanstack/react-query';

import {
  asProblem,
  askSimulation,
  cancelSimulation,
  listSimulations,
  Problem,
  readSimulation,
  useClient,
  type Client,
  type SimulationRequest,
  type SimulationResult,
} from '../../client';
import { useSettled } from '../../lib/useSettled';
import { useStable } from '../../lib/useStable';
import { keyOf } from './useQuestion';

/** The pause after a change before it is requested, in milliseconds, so that a moving slider requests nothing. */
export const DEBOUNCE = 400;

/**
 * The interval of reading a growing answer, in milliseconds. The load generator cancels a simulation that is not read
 * for 15 s.
 */
export const LOOK_EVERY = 500;

/** The pause after a failed request, in milliseconds. */
export const RETRY_EVERY = 3000;

/**
 * The time without a read after which a page counts as suspended, in milliseconds. What was cancelled meanwhile is
 * requested again.
 */
export const SUSPENDED_AFTER = 10_000;

/** The progress of an answer. Lost: the load generator does not answer now, and is requested again. */
type Phase = 'asking' | 'queued' | 'running' | 'done' | 'cancelled' | 'failed' | 'lost';

/** The result of a read. */
interface Update {
  phase: Phase;
  /** The results so far. */
  result?: SimulationResult;
  /** Why no more results follow, or none for now. */
  problem?: Problem;
  /** The time of the load generator's last answer, in milliseconds since 1970. */
  at: number;
}

/** The answer to a question, as far as it is known. */
interface Answer extends Pick<Update, 'phase' | 'result' | 'problem'> {
  /** Whether the result is that of the question before, as nothing is computed of this one yet. */
  isEarlier: boolean;
  /** The progress of this question, where it is known. */
  progress?: SimulationResult['progress'];
}

/** An answer, and its actions. */
export interface Simulating {
  answer: Answer;
  /** Cancels the computation and keeps the results so far. */
  cancel(): void;
  /** Requests it again. */
  retry(): void;
}

/**
 * Requests a question and polls its answer. Another question, or leaving the page, cancels the one before. It waits
 * until the user's permission is known.
 */
export function useSimulation(request: SimulationRequest | undefined, mayAsk: boolean | undefined): Simulating {
  const client = useClient();
  const queries = useQueryClient();
  const [attempt, setAttempt] = useState(0);
  const key = request && `simulation ${attempt} ${mayAsk} ${keyOf(request)}`;
  const isRested = useSettled(key, DEBOUNCE);
  const { data } = useQuery<Update>({
    queryKey: [key],
    queryFn: ({ signal }) => look({ client, request, mayAsk }, queries.getQueryData<Update>([key]), signal),
    enabled: key !== undefined && mayAsk !== undefined && isRested,
    refetchInterval: ({ state }) => nextAfter(state.data),
    refetchIntervalInBackground: true,
  });
  useEffect(
    () => () => {
      end(client, queries.getQueryData<Update>([key]));
      queries.removeQueries({ queryKey: [key] });
    },
    [client, queries, key]
  );
  const [shown, setShown] = useState<{ key?: string; result?: SimulationResult }>({});
  if (data?.result && data.result.points.length > 0 && data.result !== shown.result) {
    setShown({ key, result: data.result });
  }
  const cancel = () => {
    void queries.cancelQueries({ queryKey: [key] });
    end(client, data);
    queries.setQueryData<Update>([key], { at: 0, ...data, phase: 'cancelled' });
  };
  const answer = {
    phase: data?.phase ?? 'asking',
    problem: data?.problem,
    result: shown.result ?? data?.result,
    isEarlier: shown.result !== undefined && shown.key !== key,
    progress: data?.result?.progress,
  };
  return { answer, cancel: useStable(cancel), retry: useStable(() => setAttempt((n) => n + 1)) };
}

interface Job {
  client: Client;
  request: SimulationRequest | undefined;
  /** Whether a new computation may be requested. Without it, only a stored one is used. */
  mayAsk: boolean | undefined;
}

/** Reads the simulation, or requests it where none exists. It never rejects. */
async function look(job: Job, before: Update | undefined, signal: AbortSignal): Promise<Update> {
  const { client } = job;
  const at = Date.now();
  try {
    const now = before?.result && (await again(client, before.result.id));
    const isGivenUp = now?.progress.state === 'cancelled' && before !== undefined && at - before.at > SUSPENDED_AFTER;
    const result = now && !isGivenUp ? now : ((await storedAnswer(job)) ?? (await compute(job)));
    const update = { phase: result.progress.state, result, problem: whyEnded(result), at };
    if (signal.aborted) {
      end(client, update);
    }
    return update;
  } catch (error) {
    const problem = asProblem(error);
    return { at, ...before, phase: isLoss(problem) ? 'lost' : 'failed', problem };
  }
}

/** Returns the simulation; undefined where the load generator was restarted and does not have it. */
async function again(client: Client, id: string): Promise<SimulationResult | undefined> {
  return readSimulation(client, id).catch((error: unknown) => {
    if (asProblem(error).status === 404) {
      return undefined;
    }
    throw error;
  });
}

/** Returns a stored answer to the same question. */
async function storedAnswer({ client, request }: Job): Promise<SimulationResult | undefined> {
  const { simulations } = await listSimulations(client);
  const key = request && keyOf(request);
  const same = simulations.find(({ state, request: asked }) => state === 'done' && keyOf(asked) === key);
  return same && again(client, same.id);
}

async function compute({ client, request, mayAsk }: Job): Promise<SimulationResult> {
  if (!request || !mayAsk) {
    throw new Problem(
      403,
      'Your role can view simulations but not start them, and no stored result matches this question.'
    );
  }
  return askSimulation(client, request);
}

/** Cancels a running simulation. The load generator also cancels it when it is not read. */
function end(client: Client, known: Update | undefined) {
  if (known?.result && nextAfter(known) !== false) {
    cancelSimulation(client, known.result.id).catch(() => undefined);
  }
}

/** Milliseconds until the next read; false where nothing more comes. */
function nextAfter({ phase }: Pick<Update, 'phase'> = { phase: 'asking' }): number | false {
  if (phase === 'lost') {
    return RETRY_EVERY;
  }
  return phase === 'queued' || phase === 'running' ? LOOK_EVERY : false;
}

function whyEnded({ error }: SimulationResult): Problem | undefined {
  return error === undefined ? undefined : new Problem(0, error);
}

/** Whether neither the load generator nor a proxy before it answered. */
function isLoss({ status }: Problem): boolean {
  return status === 0 || status === 502 || status === 504;
}
