import type { State } from '../client';

/**
 * How many different opening texts are in circulation; 0 stands for one for each
 * conversation. Undefined where the load generator does not tell.
 */
export function openingsOf(shape: State['shape']): number | undefined {
  return 'openings' in shape && typeof shape.openings === 'number' ? shape.openings : undefined;
}
