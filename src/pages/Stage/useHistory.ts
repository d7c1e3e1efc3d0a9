import { useState } from 'react';

import { readHistory, useClient, usePolled, type HistoryPoint, type Live } from '../../client';
import { LANE } from '../lane';
import { merge, pointOf, withPoint } from './history';

interface Known {
  points: HistoryPoint[];
  /** The newest snapshot in it. */
  time?: string;
  /** The newest answer in it. */
  answer?: HistoryPoint[];
  /** The number of reconnections. The history is requested after each. */
  found: number;
  live: boolean;
}

/**
 * Returns the last ten minutes of the lane of live: the history of the load generator, requested when the stage opens
 * and after each loss, and every snapshot since.
 */
export function useHistory({ state, lane }: Live, name: string = LANE): HistoryPoint[] {
  const client = useClient();
  const [known, setKnown] = useState<Known>({ points: [], found: 0, live: false });
  const isLive = lane !== undefined;
  const load = known.live ? () => readHistory(client, name) : undefined;
  const answer = usePolled(load, false, `history ${name} ${known.found}`).value?.points;
  const time = state.status === 'live' ? state.snapshot.time : undefined;
  if (known.time === time && known.answer === answer && known.live === isLive) {
    return known.points;
  }
  let { points } = known;
  if (answer && answer !== known.answer) {
    points = merge(points, answer);
  }
  if (time !== undefined && time !== known.time && lane) {
    points = withPoint(points, pointOf(time, lane));
  }
  const found = known.found + (isLive && !known.live ? 1 : 0);
  setKnown({ points, time, answer, found, live: isLive }); // set while rendering; the next render uses it
  return points;
}
