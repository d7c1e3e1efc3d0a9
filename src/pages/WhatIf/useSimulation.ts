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
import { useStable } from '../../lib/useStable';
import { keyOf } from './question';

/** How long a question rests before it is asked, so that a slider on its way asks nothing, in milliseconds. */
export const REST = 400;

/** How often an answer that grows is read, in milliseconds: the load generator cancels what is not read for 15 s. */
export const LOOK_EVERY = 500;

/** How long a load generator that does not answer is left alone, in milliseconds. */
export const RETRY_EVERY = 3000;

/** After so long without a read, in milliseconds, a page has slept, and what was cancelled meanwhile is asked anew. */
export const SLEPT = 10_000;

/** How far an answer is. Lost: the load generator does not answer now, and is asked again. */
type Phase = 'asking' | 'queued' | 'running' | 'done' | 'cancelled' | 'failed' | 'lost';

/** What a read has brought. */
interface Update {
  phase: Phase;
  /** What is computed so far. */
  result?: SimulationResult;
  /** Why nothing more comes, or nothing for now. */
  problem?: Problem;
  /** When the load generator last answered, in milliseconds since 1970. */
  at: number;
}

/** The answer to a question, as far as it is known. */
interface Answer extends Pick<Update, 'phase' | 'result' | 'problem'> {
  /** Whether the result is that of the question before, as nothing is computed of this one yet. */
  isEarlier: boolean;
  /** How far the computing of this question is, where that is known. */
  progress?: SimulationResult['progress'];
}

/** An answer, and what a person may do about it. */
export interface Simulating {
  answer: Answer;
  /** Ends the computing; what there is stays. */
  cancel(): void;
  /** Asks again. */
  retry(): void;
}

/**
 * Asks a question and follows its answer. Another question, or a page that is left, ends
 * the computing of the one before. It waits until it is known whether one may ask.
 */
export function useSimulation(request: SimulationRequest | undefined, mayAsk: boolean | undefined): Simulating {
  const client = useClient();
  const queries = useQueryClient();
  const [attempt, setAttempt] = useState(0);
  const key = request && `simulation ${attempt} ${mayAsk} ${keyOf(request)}`;
  const isRested = useRested(key);
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

/** Whether a key has stayed the same for a while. */
function useRested(key: string | undefined): boolean {
  const [rested, setRested] = useState<string>();
  useEffect(() => {
    const timer = setTimeout(() => setRested(key), REST);
    return () => clearTimeout(timer);
  }, [key]);
  return rested === key;
}

interface Job {
  client: Client;
  request: SimulationRequest | undefined;
  /** Whether a new computation may be asked for; without it, only one that is kept will do. */
  mayAsk: boolean | undefined;
}

/** Reads the simulation, or asks for it where there is none yet or none any more. It never rejects. */
async function look(job: Job, before: Update | undefined, signal: AbortSignal): Promise<Update> {
  const { client } = job;
  const at = Date.now();
  try {
    const now = before?.result && (await again(client, before.result.id));
    const isGivenUp = now?.progress.state === 'cancelled' && before !== undefined && at - before.at > SLEPT;
    const result = now && !isGivenUp ? now : ((await kept(job)) ?? (await compute(job)));
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

/** The simulation as it is now; undefined where the load generator was restarted and does not have it. */
async function again(client: Client, id: string): Promise<SimulationResult | undefined> {
  return readSimulation(client, id).catch((error: unknown) => {
    if (asProblem(error).status === 404) {
      return undefined;
    }
    throw error;
  });
}

/** The answer to the same question, where it was computed before. */
async function kept({ client, request }: Job): Promise<SimulationResult | undefined> {
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

/** Cancels what is still computed; the load generator does so by itself, too, when nothing reads it. */
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

/** Whether neither the load generator nor what stands before it answered. */
function isLoss({ status }: Problem): boolean {
  return status === 0 || status === 502 || status === 504;
}
