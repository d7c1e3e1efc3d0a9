import { useRef } from 'react';

import { useStable } from './useStable';

/**
 * Tells the latest of several asynchronous calls from the earlier ones. The result begins a call, and returns a
 * function that says whether no other has begun since.
 */
export function useLatest(): () => () => boolean {
  const count = useRef(0);
  return useStable(() => {
    const mine = ++count.current;
    return () => mine === count.current;
  });
}
