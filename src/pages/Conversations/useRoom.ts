import { useLayoutEffect, useState, type RefObject } from 'react';

/** The least height of what scrolls by itself, in pixels. */
const LEAST = 320;

/** What stands below it: padding of its frame and of the page. */
const BELOW = 36;

/** The height, in pixels, with which a box reaches down to the end of the window it begins in. */
export function useRoom(box: RefObject<HTMLElement>): number {
  const [height, setHeight] = useState(LEAST);
  useLayoutEffect(() => {
    const measure = () => {
      const top = (box.current?.getBoundingClientRect().top ?? 0) + document.documentElement.scrollTop;
      setHeight(Math.max(LEAST, Math.floor(window.innerHeight - top - BELOW)));
    };
    measure();
    window.addEventListener('resize', measure);
    const moves = new ResizeObserver(measure); // what is above may come, grow or go
    moves.observe(document.body);
    return () => {
      moves.disconnect();
      window.removeEventListener('resize', measure);
    };
  }, [box]);
  return height;
}
