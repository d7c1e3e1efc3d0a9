import type { LaneSnapshot, State } from '../client';

/**
 * What is under load: the simulated cluster, a Dynamo with mock workers, a Dynamo,
 * or an OpenAI-compatible server that does not show what it is.
 */
export type TargetKind = 'simulated' | 'mock' | 'dynamo' | 'plain' | 'unknown';

/** Which request extensions the target takes, as GET /status tells; undefined while it is not known. */
export type Extensions = Record<string, boolean> | undefined;

/**
 * Tells what is under load from what the load generator knows of it, and whether it
 * takes Dynamo's request extension nvext.
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

/** What a page says of its target before any number; nothing where there is nothing to warn of. */
export const targetNotes: Record<TargetKind, string | undefined> = {
  simulated:
    'Simulated cluster: requests and the router’s formula are real; workers, GPUs and the time they take are imitated.',
  mock: 'A real Dynamo with mock workers: the routing is real, engines and their timing are imitated.',
  dynamo: undefined,
  plain: 'This target shows only its OpenAI interface: what is behind it cannot be seen from here.',
  unknown: undefined,
};

/** Why a simulated cluster's figures are not to be held against recorded ones; nothing where they may be. */
export function simulationNote({ simulation }: Pick<State, 'simulation'>): string | undefined {
  if (simulation && simulation.speed !== 1) {
    return `the simulated cluster’s time goes ${simulation.speed} times as fast as the clock, so no live time compares with a recorded one.`;
  }
  if (simulation && !simulation.calibrated) {
    return 'the timing of the simulated cluster as it is set now is assumed. It was fitted to no recorded result.';
  }
  return undefined;
}
