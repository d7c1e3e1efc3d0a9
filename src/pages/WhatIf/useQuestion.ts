import { useMemo } from 'react';
import { useSearchParams } from 'react-router-dom';

import type { SimulationList } from '../../client';
import { useStable } from '../../lib/useStable';
import { fields, type Field, type FieldName } from './fields';
import { PRESET, PROFILE, questionOf, type Question } from './question';

/** The question in the page's address, and its setters. */
export interface Asked {
  question?: Question;
  /** Sets a field; undefined resets it to the preset's value. */
  set(name: FieldName, value: string | undefined): void;
  /** Selects another preset without changes, at the chosen levels. */
  choosePreset(name: string): void;
  /** Selects another profile, and keeps the changes. */
  chooseProfile(name: string): void;
  /** Resets all changes. */
  reset(): void;
}

/** Keeps the question in the page's address, so that links, reloads and the back button restore it. */
export function useQuestion(list: SimulationList | undefined): Asked {
  const [params, setParams] = useSearchParams();
  const question = useMemo(() => list && questionOf(params, list), [params, list]);
  const change = (replace: boolean, edit: (next: URLSearchParams) => void) =>
    setParams(
      (now) => {
        const next = new URLSearchParams(now);
        edit(next);
        return next;
      },
      { replace }
    );
  const forget = (next: URLSearchParams, some: Field[]) => some.forEach(({ name }) => next.delete(name));
  return {
    question,
    set: useStable((name: FieldName, value: string | undefined) =>
      change(true, (next) =>
        value === undefined || value === question?.before[name] ? next.delete(name) : next.set(name, value)
      )
    ),
    choosePreset: useStable((name: string) =>
      change(false, (next) => {
        forget(
          next,
          fields.filter(({ group }) => group !== 'computed')
        );
        next.set(PRESET, name);
      })
    ),
    chooseProfile: useStable((name: string) => change(false, (next) => next.set(PROFILE, name))),
    reset: useStable(() => change(true, (next) => forget(next, fields))),
  };
}
