import { useCallback, useLayoutEffect, useRef } from 'react';

/** A function that is always the same and does what the newest one does. For event handlers only. */
export function useStable<A extends unknown[], R>(newest: (...args: A) => R): (...args: A) => R {
  const latest = useRef(newest);
  useLayoutEffect(() => {
    latest.current = newest;
  });
  return useCallback((...args: A) => latest.current(...args), []);
}
