import { useMemo } from 'react';

import { useLive } from '../../client';
import { lastKnown } from '../../lib/known';
import { namer } from './Conversation/model';

/** Names a lane's workers; the function changes with the names alone. */
export function useWorkerNames(lane: string): (id: string) => string {
  const known = lastKnown(useLive(lane), lane);
  const names = JSON.stringify(known?.lane.cluster.workers.map(({ id, name }) => ({ id, name })) ?? []);
  return useMemo(() => namer(JSON.parse(names)), [names]);
}
