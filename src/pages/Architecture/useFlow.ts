import { useState } from 'react';

import type { Worker } from '../../client';
import { advance, NO_FLOW, shares } from './flow';

/** Returns the share of requests of each worker, updated with each snapshot; time is the snapshot's. */
export function useFlow(workers: Worker[], time: string | undefined): number[] {
  const [flow, setFlow] = useState(NO_FLOW);
  const next = time === undefined ? flow : advance(flow, workers, Date.parse(time));
  if (next !== flow) {
    setFlow(next);
  }
  return shares(next, workers);
}
