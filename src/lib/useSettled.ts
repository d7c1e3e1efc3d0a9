import { useEffect, useState } from 'react';

/** Whether a value has not changed for so many milliseconds. */
export function useSettled(value: string | undefined, after: number): boolean {
  const [settled, setSettled] = useState(value);
  useEffect(() => {
    const timer = setTimeout(() => setSettled(value), after);
    return () => clearTimeout(timer);
  }, [value, after]);
  return settled === value;
}
