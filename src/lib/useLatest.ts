import { useRef } from 'react';

import { useStable } from './useStable';

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
