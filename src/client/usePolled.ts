import { useEffect, useState } from 'react';
import {
  catchError,
  defer,
  distinctUntilChanged,
  EMPTY,
  exhaustMap,
  fromEvent,
  map,
  type Observable,
  of,
  startWith,
  switchMap,
  timer,
} from 'rxjs';

import { share } from '../lib/share';
import { useStable } from '../lib/useStable';
import { asProblem, type Problem } from './problem';

/** What is known of something that is asked for again and again. */
export interface Polled<T> {
  /** The last answer; parts of it that did not change are the objects of the one before. */
  value?: T;
  /** Why the last question had no answer; the value is then an earlier one. */
  problem?: Problem;
  /** When the value came, in milliseconds since 1970. */
  at?: number;
}

/**
 * Asks for something at once and then every so many milliseconds, one question
 * at a time, for as long as the component is there and somebody can see it.
 * Without load it rests, and keeps what it knows. The key says what is asked
 * for: when it changes, the earlier answer is forgotten.
 */
export function usePolled<T>(load: (() => Promise<T>) | undefined, everyMs: number, key: string): Polled<T> {
  const [known, setKnown] = useState<Polled<T> & { key: string }>({ key });
  const ask = useStable(() => (load ? load() : Promise.reject(new Error('nothing to load'))));
  const active = load !== undefined;
  useEffect(() => {
    if (!active) {
      return undefined;
    }
    const answers = isVisible().pipe(
      switchMap((visible) => (visible ? timer(0, everyMs) : EMPTY)),
      exhaustMap(() =>
        defer(ask).pipe(
          map((value): Polled<T> => ({ value, at: Date.now() })),
          catchError((error: unknown) => of<Polled<T>>({ problem: asProblem(error) }))
        )
      )
    );
    const subscription = answers.subscribe((answer) => setKnown((before) => merge(before, key, answer)));
    return () => subscription.unsubscribe();
  }, [active, ask, everyMs, key]);
  return known.key === key ? known : {};
}

function merge<T>(before: Polled<T> & { key: string }, key: string, { value, problem, at }: Polled<T>) {
  const last = before.key === key ? before : undefined;
  if (problem) {
    return { key, value: last?.value, at: last?.at, problem };
  }
  return { key, value: share(last?.value, value), at };
}

/** Whether somebody can see the page, from now on. */
function isVisible(): Observable<boolean> {
  return fromEvent(document, 'visibilitychange').pipe(
    startWith(undefined),
    map(() => document.visibilityState !== 'hidden'),
    distinctUntilChanged()
  );
}
