import { useCallback } from 'react';
import { useLocation, useSearchParams } from 'react-router-dom';

/** A choice on a page, kept in its address under a name, so that a link restores it; undefined without a choice. */
export function useChoice(name: string): [chosen: string | undefined, choose: (value: string | undefined) => void] {
  const [params, setParams] = useSearchParams();
  const { state } = useLocation(); // the page's origin is kept
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
