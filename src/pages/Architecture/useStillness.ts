import type { Live } from '../../client';
import { useReducedMotion } from '../../components/Diagram';

/** Why nothing moves in the drawing; undefined while requests travel. */
export function useStillness({ state, lane }: Live): string | undefined {
  const reduced = useReducedMotion();
  if (state.status !== 'live' || !lane) {
    return 'Nothing travels in the drawing: nothing is known of the present moment.';
  }
  if (!lane.state.running) {
    return 'Nothing travels in the drawing: the workload is stopped.';
  }
  return reduced ? 'Nothing travels in the drawing, since your system asks for less motion.' : undefined;
}
