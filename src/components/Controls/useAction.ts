import { useEffect, useRef, useState } from 'react';

import { asProblem, type Problem } from '../../client';
import { useLatest } from '../../lib/useStable';

/** How long to wait for the state that follows an answer, in milliseconds. */
export const FOLLOW_UP = 3000;

/** An operator's request and its result. */
export interface Action {
  /** The name of the request in progress, until the state that follows it has arrived. */
  busy?: string;
  /** The error of the last failure. */
  failure?: { name: string; problem: Problem };
  /** Runs a request. The promise is true if it succeeded; it never rejects. */
  run(name: string, call: () => Promise<unknown>): Promise<boolean>;
  dismiss(): void;
}

interface UnderWay {
  name: string;
  /** The time of the answer by the browser's clock. */
  answeredAt?: number;
}

/**
 * Runs an operator's calls. seenAt is the time of the newest snapshot. Where a second call begins before the first is
 * answered, busy and failure belong to the second, whichever answer arrives first.
 */
export function useAction(seenAt: number | undefined): Action {
  const [underWay, setUnderWay] = useState<UnderWay>();
  const [failure, setFailure] = useState<Action['failure']>();
  const timer = useRef<ReturnType<typeof setTimeout>>();
  const begin = useLatest();
  useEffect(() => () => clearTimeout(timer.current), []);

  const run = async (name: string, call: () => Promise<unknown>) => {
    const isLatest = begin();
    setUnderWay({ name });
    setFailure(undefined);
    clearTimeout(timer.current);
    try {
      await call();
      if (isLatest()) {
        setUnderWay({ name, answeredAt: Date.now() });
        timer.current = setTimeout(() => setUnderWay(undefined), FOLLOW_UP);
      }
      return true;
    } catch (error) {
      if (isLatest()) {
        setUnderWay(undefined);
        setFailure({ name, problem: asProblem(error) });
      }
      return false;
    }
  };
  const followed = underWay?.answeredAt !== undefined && seenAt !== undefined && seenAt > underWay.answeredAt;
  return { busy: followed ? undefined : underWay?.name, failure, run, dismiss: () => setFailure(undefined) };
}
