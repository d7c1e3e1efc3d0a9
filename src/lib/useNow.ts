import { useEffect, useState } from 'react';

/** Returns the time in milliseconds since 1970, updated every second. */
export function useNow(): number {
  const [now, setNow] = useState(Date.now);
  useEffect(() => {
    const timer = setInterval(() => setNow(Date.now()), 1000);
    return () => clearInterval(timer);
  }, []);
  return now;
}

/** Slightly more than the second after which a newer time is due. The timer starts only when none arrives. */
export const OVERDUE = 1200;

/** Returns the age of a time, in whole seconds. */
export function useAge(time: number): number {
  const [seen, setSeen] = useState({ time, age: 0 });
  useEffect(() => {
    const tick = () => setSeen({ time, age: Math.floor((Date.now() - time) / 1000) });
    const timer = setInterval(tick, OVERDUE);
    return () => clearInterval(timer);
  }, [time]);
  return seen.time === time ? seen.age : 0;
}
