import { useCallback } from 'react';
import { useLocation, useSearchParams } from 'react-router-dom';

/**
 * A choice on a page, kept in its address under a name, so that a link shows the same;
 * undefined where nothing is chosen.
 */
export function useChoice(name: string): [chosen: string | undefined, choose: (value: string | undefined) => void] {
  const [params, setParams] = useSearchParams();
  const { state } = useLocation(); // whence the page was reached, which stays so
  const choose = useCallback(
    (value: string | undefined) =>
      setParams(
        (now) => {
          const next = new URLSearchParams(now);
          if (value === undefined) {
            next.delete(name);
          } else {
            next.set(name, value);
          }
          return next;
        },
        { replace: true, state }
      ),
    [name, setParams, state]
  );
  return [params.get(name) ?? undefined, choose];
}
