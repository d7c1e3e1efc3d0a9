import type { Live } from '../../client';
import { useReducedMotion } from '../../components/Diagram';

/** Returns why nothing moves in the drawing; undefined while requests are drawn. */
export function useStillness({ state, lane }: Live): string | undefined {
  const reduced = useReducedMotion();
  if (state.status !== 'live' || !lane) {
    return 'Animation paused: no live data.';
  }
  if (!lane.state.running) {
    return 'Animation paused: the workload is stopped.';
  }
  return reduced ? 'Animation disabled: your system is set to reduce motion.' : undefined;
}
