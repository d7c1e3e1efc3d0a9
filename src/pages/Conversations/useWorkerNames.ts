import { useCallback, useMemo } from 'react';

import { useLiveValue, type Live } from '../../client';
import { lastKnown } from '../../lib/known';
import { namer } from './Conversation/model';

/** Returns a function that names a lane's workers. It changes only with the names. */
export function useWorkerNames(lane: string): (id: string) => string {
  const names = useLiveValue(
    lane,
    useCallback((live: Live) => namesOf(live, lane), [lane])
  );
  return useMemo(() => namer(JSON.parse(names)), [names]);
}

function namesOf(live: Live, lane: string): string {
  const workers = lastKnown(live, lane)?.lane.cluster.workers ?? [];
  return JSON.stringify(workers.map(({ id, name }) => ({ id, name })));
}
