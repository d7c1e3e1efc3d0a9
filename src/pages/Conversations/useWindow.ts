import { useLayoutEffect, useState, type RefObject } from 'react';

/** How many rows are there beyond each edge, so that scrolling meets no gap. */
const SPARE = 8;

/** Which rows are there: from first up to, and without, end. */
export interface Range {
  first: number;
  end: number;
}

/** Of so many rows of one height, in pixels, those that a scrolling box shows, and some around them. */
export function useWindow(box: RefObject<HTMLElement>, count: number, height: number): Range {
  const [seen, setSeen] = useState({ first: 0, size: 2 * SPARE });
  useLayoutEffect(() => {
    const element = box.current;
    if (!element) {
      return undefined;
    }
    const measure = () => {
      const first = Math.max(0, Math.floor(element.scrollTop / height) - SPARE);
      const size = Math.ceil(element.clientHeight / height) + 2 * SPARE;
      setSeen((before) => (before.first === first && before.size === size ? before : { first, size }));
    };
    measure();
    const resizes = new ResizeObserver(measure);
    resizes.observe(element);
    element.addEventListener('scroll', measure, { passive: true });
    return () => {
      resizes.disconnect();
      element.removeEventListener('scroll', measure);
    };
  }, [box, height]);
  const first = Math.min(seen.first, Math.max(0, count - 1));
  return { first, end: Math.min(count, first + seen.size) };
}
