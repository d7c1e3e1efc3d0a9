import { useEffect, useRef, useState } from 'react';

import type { Level } from '../../lib/level';
import { useLatest } from '../../lib/useStable';

/** The pause after the last move of the slider before its value is sent, in milliseconds. */
export const DEBOUNCE = 300;

/** How long an answered value is shown before a snapshot contains it, in milliseconds. */
export const SETTLE = 1500;

/** A concurrency on its way from the slider to the load generator. */
interface ConcurrencyDraft {
  /** The requested concurrency, or else the one in force. */
  value: Level;
  /** Requests another one. It is sent after a pause. */
  change(value: Level): void;
  /** Sends the pending value at once. */
  flush(): void;
  /** Returns the pending value and clears it; the caller sends it. */
  take(): Level | undefined;
}

/** Debounces changes of the concurrency in force. send resolves to whether it succeeded. */
export function useConcurrency(inForce: Level, send: (value: Level) => Promise<boolean>): ConcurrencyDraft {
  const [draft, setDraft] = useState<Level>();
  const waiting = useRef<Level>();
  const debounce = useRef<ReturnType<typeof setTimeout>>();
  const settle = useRef<ReturnType<typeof setTimeout>>();
  const begin = useLatest();
  useEffect(
    () => () => {
      clearTimeout(debounce.current);
      clearTimeout(settle.current);
    },
    []
  );

  const forget = (value: Level) => setDraft((now) => (now === value ? undefined : now));
  const take = () => {
    clearTimeout(debounce.current);
    const value = waiting.current;
    waiting.current = undefined;
    if (value !== undefined) {
      clearTimeout(settle.current);
      settle.current = setTimeout(() => forget(value), SETTLE);
    }
    return value;
  };
  const flush = async () => {
    const value = take();
    if (value === undefined) {
      return;
    }
    clearTimeout(settle.current);
    const isLatest = begin();
    const accepted = await send(value);
    if (!isLatest()) {
      return;
    }
    if (accepted) {
      settle.current = setTimeout(() => forget(value), SETTLE);
    } else {
      forget(value);
    }
  };
  const change = (value: Level) => {
    begin();
    clearTimeout(debounce.current);
    waiting.current = value;
    setDraft(value);
    debounce.current = setTimeout(flush, DEBOUNCE);
  };
  return { value: draft ?? inForce, change, flush, take };
}
