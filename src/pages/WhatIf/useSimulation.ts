import { useEffect, useRef, useState } from 'react';

import { useClient, type SimulationRequest, type SimulationResult } from '../../client';
import { useStable } from '../../lib/useStable';
import { runSimulation, type Update } from './runSimulation';
import { keyOf } from './question';

/** How long a question rests before it is asked, so that a slider on its way asks nothing, in milliseconds. */
export const REST = 400;

/** The answer to a question, as far as it is known. */
export interface Answer extends Update {
  /** Whether the result is that of the question before, as nothing is computed of this one yet. */
  isEarlier: boolean;
  /** How far the computing of this question is, where that is known. */
  progress?: SimulationResult['progress'];
}

/** An answer, and what a person may do about it. */
export interface Simulating {
  answer: Answer;
  /** Ends the computing; what there is stays. */
  cancel(): void;
  /** Asks again. */
  retry(): void;
}

/**
 * Asks a question and follows its answer. Another question, or a page that is left, ends
 * the computing of the one before. It waits until it is known whether one may ask.
 */
export function useSimulation(request: SimulationRequest | undefined, mayAsk: boolean | undefined): Simulating {
  const client = useClient();
  const [known, setKnown] = useState<Answer & { key?: string }>({ phase: 'asking', isEarlier: false });
  const [attempt, setAttempt] = useState(0);
  const running = useRef<AbortController>();
  const key = request && keyOf(request);
  const receive = (about: string, { phase, result, problem }: Update) =>
    setKnown((now) => {
      const isNew = result !== undefined && result.points.length > 0;
      const isEarlier = !isNew && now.result !== undefined && (now.key !== about || now.isEarlier);
      const shown = isNew || !isEarlier ? result : now.result;
      return { key: about, phase, problem, result: shown, isEarlier, progress: result?.progress };
    });
  const begin = useStable((about: string, mayAsk: boolean) => {
    const controller = new AbortController();
    running.current = controller;
    if (request) {
      void runSimulation({ client, request, mayAsk }, controller.signal, (update) => receive(about, update));
    }
  });
  useEffect(() => {
    if (key === undefined || mayAsk === undefined) {
      return undefined;
    }
    const timer = setTimeout(() => begin(key, mayAsk), REST);
    return () => {
      clearTimeout(timer);
      running.current?.abort();
    };
  }, [begin, client, key, mayAsk, attempt]);
  const cancel = () => {
    running.current?.abort();
    setKnown((now) => ({ ...now, phase: 'cancelled' }));
  };
  const again = () => {
    setKnown((now) => ({
      ...now,
      phase: 'asking',
      problem: undefined,
      progress: undefined,
      isEarlier: now.result !== undefined,
    }));
    setAttempt((n) => n + 1);
  };
  const answer =
    known.key === key
      ? known
      : { phase: 'asking' as const, result: known.result, isEarlier: known.result !== undefined };
  return { answer, cancel: useStable(cancel), retry: useStable(again) };
}
