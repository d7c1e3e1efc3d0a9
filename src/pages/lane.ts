import type { Live } from '../client';
import { lastKnown } from '../lib/known';

/** The lane of the pages. */
export const LANE = 'main';

/** The lane that runs the same conversations against a second target, where there is one. */
export const TWIN = 'twin';

/** Whether a second lane runs the same conversations; false while unknown. */
export function hasTwin(live: Live): boolean {
  return lastKnown(live, TWIN) !== undefined;
}
