import { useCallback } from 'react';
import { useQueryClient } from '@tanstack/react-query';

import { readTwin } from './calls';
import { useClient } from './context';
import type { Twin } from './types';
import { usePolled, type Polled } from './usePolled';

/** The interval between requests for the two lanes, in milliseconds: pairs arrive by the second. */
const TWIN_EVERY = 2000;

/** The interval during a showcase, whose text grows while it is read. */
const SHOWCASE_EVERY = 250;

const KEY = 'twin';

/** Two lanes that run the same conversations. It is polled while active is true. */
export function useTwin(active: boolean): Polled<Twin> {
  const client = useClient();
  return usePolled(
    active ? () => readTwin(client) : undefined,
    ({ value }) => (value?.showcase?.state === 'running' ? SHOWCASE_EVERY : TWIN_EVERY),
    KEY
  );
}

/** Returns a function that stores the answer to a change as the newest value. */
export function useSetTwin(): (twin: Twin) => void {
  const queries = useQueryClient();
  return useCallback(
    (twin: Twin) => void queries.setQueryData<Polled<Twin>>([KEY], { value: twin, at: Date.now() }),
    [queries]
  );
}
