import { useCallback, useInsertionEffect, useRef } from 'react';

/** Returns a function with a constant identity that calls the newest one. It must not be called while rendering. */
export function useStable<A extends unknown[], R>(newest: (...args: A) => R): (...args: A) => R {
  const latest = useRef(newest);
  useInsertionEffect(() => {
    latest.current = newest;
  });
  return useCallback((...args: A) => latest.current(...args), []);
}

/**
 * Identifies the latest of several asynchronous calls. The result begins a call, and returns a function that reports
 * whether no other call has begun since.
 */
export function useLatest(): () => () => boolean {
  const count = useRef(0);
  return useStable(() => {
    const mine = ++count.current;
    return () => mine === count.current;
  });
}
