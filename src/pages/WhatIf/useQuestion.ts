import { useMemo } from 'react';
import { useSearchParams } from 'react-router-dom';

import type { SimulationList } from '../../client';
import { useStable } from '../../lib/useStable';
import { fields, type Field, type FieldName } from './fields';
import { PRESET, PROFILE, questionOf, type Question } from './question';

/** The question in the page's address, and the ways to change it. */
export interface Asked {
  question?: Question;
  /** Puts a value into a field; undefined takes the preset's again. */
  set(name: FieldName, value: string | undefined): void;
  /** Begins with another preset, as it is, at the levels that were chosen. */
  choosePreset(name: string): void;
  /** Takes another profile, and keeps what was changed. */
  chooseProfile(name: string): void;
  /** Takes back all that was changed. */
  reset(): void;
}

/** Keeps the question in the page's address, so that a link, a reload and the way back ask the same. */
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
