import type { LaneSnapshot, State } from '../client';
import { mostFrequent } from './errorNames';
import { capital } from './text';

/**
 * The kind of the target: the simulated cluster, a Dynamo with mock workers, a Dynamo, or an OpenAI-compatible server
 * of unknown kind.
 */
export type TargetKind = 'simulated' | 'mock' | 'dynamo' | 'plain' | 'unknown';

/** The request extensions that the target accepts, as GET /status reports; undefined while unknown. */
type Extensions = Record<string, boolean> | undefined;

/**
 * Derives the kind of the target from the lane and from whether the target accepts Dynamo's request extension nvext.
 */
export function targetKind(lane: LaneSnapshot | undefined, extensions: Extensions): TargetKind {
  if (!lane) {
    return 'unknown';
  }
  if (lane.target.kind === 'simulated') {
    return 'simulated';
  }
  if (lane.target.kind === 'mocked') {
    return 'mock';
  }
  if (extensions?.nvext === undefined) {
    return 'unknown';
  }
  return extensions.nvext ? 'dynamo' : 'plain';
}

/** Returns the warning about a target that precedes any number; undefined without one. */
export const targetNotes: Record<TargetKind, string | undefined> = {
  simulated:
    'Simulated cluster: requests and the router’s formula are real; workers, GPUs and their timing are simulated.',
  mock: 'A real Dynamo with mock workers: the routing is real; engines and their timing are simulated.',
  dynamo: undefined,
  plain: 'This target exposes only its OpenAI API; nothing is known about what is behind it.',
  unknown: undefined,
};

/** Explains why a simulated cluster's figures must not be compared with recorded ones; undefined where they may be. */
export function simulationNote({ simulation }: Pick<State, 'simulation'>): string | undefined {
  if (simulation && simulation.speed !== 1) {
    return (
      `the simulated cluster runs at ${simulation.speed}× speed, so live times are not ` +
      'comparable with recorded ones.'
    );
  }
  if (simulation && !simulation.calibrated) {
    return 'the timing of the simulated cluster with its current settings is assumed, not fitted to recorded results.';
  }
  return undefined;
}

/** Why a target does not serve, in a few words and in a sentence. */
interface TargetTrouble {
  title: string;
  detail: string;
}

/**
 * Returns the problem of the target; undefined where it serves. A target that answers only with errors counts as
 * reached.
 */
export function targetTrouble({ target, state, window }: LaneSnapshot): TargetTrouble | undefined {
  const { problem, problem_status: status, reachable, url } = target;
  const detail = problem ? capital(problem) : `${url} does not respond.`;
  if (state.running && window.error_ratio === 1 && !window.errors.connect) {
    return { title: `Every request fails (${status ?? mostFrequent(window.errors)})`, detail };
  }
  if (reachable) {
    return undefined;
  }
  return { title: status === undefined ? 'The target is unreachable' : `The target answers ${status}`, detail };
}
