import { useCallback, useEffect, useRef } from 'react';
import { useQueryClient } from '@tanstack/react-query';

import { listBaselines } from './calls';
import { useClient } from './context';
import type { Baseline, Settings } from './types';
import { usePolled, type Polled } from './usePolled';

/** The interval between requests for the baselines, in milliseconds: imports and settled steps add to them. */
const BASELINES_EVERY = 30_000;

const KEY = 'baselines';

/**
 * Returns all baselines. They contain the levels that are sustained under the SLOs in force, so a change of the SLOs
 * requests them at once.
 */
export function useBaselines(slo?: Settings['slo']): Polled<Baseline[]> {
  const client = useClient();
  const renew = useRenewBaselines();
  const rule = slo && `${slo.ttft} ${slo.tpot}`;
  const before = useRef(rule);
  useEffect(() => {
    if (before.current !== undefined && rule !== undefined && rule !== before.current) {
      renew();
    }
    before.current = rule ?? before.current;
  }, [rule, renew]);
  return usePolled(() => listBaselines(client), BASELINES_EVERY, KEY);
}

/** Returns a function that requests the baselines again, for example after an import. */
export function useRenewBaselines(): () => void {
  const queries = useQueryClient();
  return useCallback(() => void queries.invalidateQueries({ queryKey: [KEY] }), [queries]);
}
