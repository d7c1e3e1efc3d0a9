import { useLayoutEffect, useRef, useState, type RefObject } from 'react';

/** Reports whether an element is narrower than this number of pixels, and follows its size. */
export function useNarrow(limit: number): [element: RefObject<HTMLDivElement>, narrow: boolean] {
  const element = useRef<HTMLDivElement>(null);
  const [narrow, setNarrow] = useState(false);
  useLayoutEffect(() => {
    const sizes = new ResizeObserver(([{ contentRect }]) => setNarrow(contentRect.width < limit));
    if (element.current) {
      sizes.observe(element.current);
    }
    return () => sizes.disconnect();
  }, [limit]);
  return [element, narrow];
}
