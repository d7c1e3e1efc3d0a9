import { useQuery, useQueryClient } from '@tanstack/react-query';

import { asProblem, type Problem } from './problem';

/** What is known of something that is asked for again and again. */
export interface Polled<T> {
  /** The last answer; parts of it that did not change are the objects of the one before. */
  value?: T;
  /** Why the last question had no answer; the value is then an earlier one. */
  problem?: Problem;
  /** When the value came, in milliseconds since 1970. */
  at?: number;
}

/** Milliseconds until the next question, by what is known; false asks no more. */
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
    // A failure is an answer, too: react-query would forget a first problem while it asks again.
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
