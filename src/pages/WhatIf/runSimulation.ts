import {
  asProblem,
  askSimulation,
  cancelSimulation,
  listSimulations,
  Problem,
  readSimulation,
  type Client,
  type SimulationRequest,
  type SimulationResult,
} from '../../client';
import { keyOf } from './question';

/** How often an answer that grows is looked at, in milliseconds: the load generator gives up what nobody looks at for 15 s. */
export const LOOK_EVERY = 500;

/** How long a load generator that does not answer is left alone, in milliseconds. */
export const RETRY_EVERY = 3000;

/** After so long without a look, in milliseconds, a page has slept: what was cancelled meanwhile was given up for want of one. */
export const SLEPT = 10_000;

/** How far an answer is. Lost: the load generator does not answer now, and is asked again. */
export type Phase = 'asking' | 'queued' | 'running' | 'done' | 'cancelled' | 'failed' | 'lost';

/** An update on a simulation: its phase, and the result so far. */
export interface Update {
  phase: Phase;
  /** What is computed so far. */
  result?: SimulationResult;
  /** Why nothing more comes, or nothing for now. */
  problem?: Problem;
}

/** A simulation request, and how it is sent. */
export interface Job {
  client: Client;
  request: SimulationRequest;
  /** Whether a new computation may be asked for; without it, only one that is kept will do. */
  mayAsk: boolean;
}

/**
 * Runs a simulation and reports its updates until it ends or the signal aborts it: what is
 * not computed by then is cancelled. It never rejects.
 */
export async function runSimulation(job: Job, signal: AbortSignal, onUpdate: (update: Update) => void): Promise<void> {
  const { client } = job;
  let result: SimulationResult | undefined;
  let looked = Date.now();
  const report = (update: Update) => !signal.aborted && onUpdate(update);
  while (!signal.aborted) {
    try {
      result = (result && (await again(client, result.id))) ?? (await kept(job)) ?? (await compute(job));
      while (result && !hasEnded(result) && !signal.aborted) {
        report({ phase: result.progress.state, result });
        looked = Date.now();
        await pause(LOOK_EVERY, signal);
        result = signal.aborted ? result : await again(client, result.id);
      }
      if (result?.progress.state === 'cancelled' && Date.now() - looked > SLEPT) {
        result = undefined;
        looked = Date.now();
      } else if (result) {
        report({ phase: result.progress.state, result, problem: whyEnded(result) });
        break;
      }
    } catch (error) {
      const problem = asProblem(error);
      if (!isLoss(problem)) {
        report({ phase: 'failed', result, problem });
        break;
      }
      report({ phase: 'lost', result, problem });
      await pause(RETRY_EVERY, signal);
    }
  }
  if (signal.aborted && result && !hasEnded(result)) {
    await cancelSimulation(client, result.id).catch(() => undefined); // nobody looks any more: it ends by itself, too
  }
}

/** The simulation as it is now; undefined where the load generator was started anew and knows nothing of it. */
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
  const same = simulations.find(({ state, request: asked }) => state === 'done' && keyOf(asked) === keyOf(request));
  return same && again(client, same.id);
}

async function compute({ client, request, mayAsk }: Job): Promise<SimulationResult> {
  if (!mayAsk) {
    throw new Problem(
      403,
      'Your role can view simulations but not start them, and no stored result matches this question.'
    );
  }
  return askSimulation(client, request);
}

function hasEnded({ progress: { state } }: SimulationResult): boolean {
  return state === 'done' || state === 'cancelled' || state === 'failed';
}

function whyEnded({ error }: SimulationResult): Problem | undefined {
  return error === undefined ? undefined : new Problem(0, error);
}

/** Whether nobody answered, neither the load generator nor what stands before it. */
function isLoss({ status }: Problem): boolean {
  return status === 0 || status === 502 || status === 504;
}

/** Waits, but not when nobody wants to hear of it any more. */
function pause(ms: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const timer = setTimeout(resolve, ms);
    signal.addEventListener('abort', () => {
      clearTimeout(timer);
      resolve();
    });
  });
}
