import { useEffect, useState, type RefObject } from 'react';

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
