import { useEffect, useLayoutEffect, useRef, useState, type RefObject } from 'react';

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

/** Reports whether an element is on the screen; on paper, all elements are. */
export function useSeen(element: RefObject<Element>): boolean {
  const [isSeen, setSeen] = useState(true);
  useEffect(() => {
    const observer = new IntersectionObserver((entries) => setSeen(entries[entries.length - 1].isIntersecting));
    if (element.current) {
      observer.observe(element.current);
    }
    const onPrint = () => setSeen(true);
    window.addEventListener('beforeprint', onPrint);
    return () => {
      observer.disconnect();
      window.removeEventListener('beforeprint', onPrint);
    };
  }, [element]);
  return isSeen;
}
