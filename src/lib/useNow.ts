import { useEffect, useState } from 'react';

/** The time in milliseconds since 1970, anew every second. */
export function useNow(): number {
  const [now, setNow] = useState(Date.now);
  useEffect(() => {
    const timer = setInterval(() => setNow(Date.now()), 1000);
    return () => clearInterval(timer);
  }, []);
  return now;
}

/** A bit more than the second after which something newer is due: as long as it comes, nothing ticks. */
export const OVERDUE = 1200;

/** How old something of the given time is, in whole seconds. */
export function useAge(time: number): number {
  const [seen, setSeen] = useState({ time, age: 0 });
  useEffect(() => {
    const tick = () => setSeen({ time, age: Math.floor((Date.now() - time) / 1000) });
    const timer = setInterval(tick, OVERDUE);
    return () => clearInterval(timer);
  }, [time]);
  return seen.time === time ? seen.age : 0;
}
