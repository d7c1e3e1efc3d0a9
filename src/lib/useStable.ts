import { useCallback, useInsertionEffect, useRef } from 'react';

/** A function that is always the same and does what the newest one does. Not for calls while rendering. */
export function useStable<A extends unknown[], R>(newest: (...args: A) => R): (...args: A) => R {
  const latest = useRef(newest);
  useInsertionEffect(() => {
    latest.current = newest;
  });
  return useCallback((...args: A) => latest.current(...args), []);
}
