import { useLayoutEffect, useState, type RefObject } from 'react';

/** The least height of the scrolling area, in pixels. */
const LEAST = 320;

/** The height below it: padding of its frame and of the page, in pixels. */
const BELOW = 36;

/** Returns the height, in pixels, from the top of a box to the end of the window. */
export function useRoom(box: RefObject<HTMLElement>): number {
  const [height, setHeight] = useState(LEAST);
  useLayoutEffect(() => {
    const measure = () => {
      const top = (box.current?.getBoundingClientRect().top ?? 0) + document.documentElement.scrollTop;
      setHeight(Math.max(LEAST, Math.floor(window.innerHeight - top - BELOW)));
    };
    measure();
    window.addEventListener('resize', measure);
    const moves = new ResizeObserver(measure); // the parts above may appear, grow or disappear
    moves.observe(document.body);
    return () => {
      moves.disconnect();
      window.removeEventListener('resize', measure);
    };
  }, [box]);
  return height;
}
