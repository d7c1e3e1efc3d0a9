import type { State } from '../client';

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
