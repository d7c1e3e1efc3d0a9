import { useLayoutEffect, useRef, useState, type RefObject } from 'react';

/** The size of an element, and its font size, in pixels. */
export interface Size {
  width: number;
  height: number;
  font: number;
}

/** Follows the size of an element; undefined until it is laid out. */
export function useSize(): [element: RefObject<HTMLDivElement>, size: Size | undefined] {
  const element = useRef<HTMLDivElement>(null);
  const [size, setSize] = useState<Size>();
  useLayoutEffect(() => {
    const sizes = new ResizeObserver(
      ([
        {
          target,
          contentRect: { width, height },
        },
      ]) => {
        const font = parseFloat(getComputedStyle(target).fontSize);
        setSize(width > 0 && height > 0 ? { width, height, font } : undefined);
      }
    );
    if (element.current) {
      sizes.observe(element.current);
    }
    return () => sizes.disconnect();
  }, []);
  return [element, size];
}
