import { useQuery, useQueryClient } from '@tanstack/react-query';

import { asProblem, type Problem } from './problem';

/** The state of a value that is requested at intervals. */
export interface Polled<T> {
  /** The last answer. Parts of it that did not change keep their identity. */
  value?: T;
  /** Why the last request failed. The value is then an earlier one. */
  problem?: Problem;
  /** The time of the value's arrival, in milliseconds since 1970. */
  at?: number;
}

/** Milliseconds until the next request, computed from the value; false ends the requests. */
type Interval<T> = number | false | ((known: Polled<T>) => number | false);

/**
 * Loads a value at once and then at each interval, in milliseconds, one request
 * at a time, while the component is mounted and the page is visible. Without load
 * it pauses and keeps the last value. Components below one ClientProvider that use
 * the same key share the value. When the key changes, the earlier value is not shown.
 */
export function usePolled<T>(load: (() => Promise<T>) | undefined, every: Interval<T>, key: string): Polled<T> {
  const queries = useQueryClient();
  const next = (known: Polled<T> = {}) => (typeof every === 'function' ? every(known) : every);
  const { data } = useQuery<Polled<T>>({
    queryKey: [key],
    // A failure counts as an answer: react-query would drop a first problem during the next request.
    queryFn: async () => {
      try {
        return { value: await load?.(), at: Date.now() };
      } catch (error) {
        return { ...queries.getQueryData<Polled<T>>([key]), problem: asProblem(error) };
      }
    },
    enabled: load !== undefined,
    refetchInterval: ({ state }) => next(state.data),
    refetchOnWindowFocus: ({ state }) => next(state.data) !== false && 'always',
  });
  return data ?? NOTHING;
}

const NOTHING = {};
