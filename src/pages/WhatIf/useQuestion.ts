import { useMemo } from 'react';
import { useSearchParams } from 'react-router-dom';

import type { SimulationList, SimulationPreset, SimulationProfile, SimulationRequest } from '../../client';
import { useStable } from '../../lib/useStable';
import { atLoad, check, fields, requestOf, valuesOf, type Field, type FieldName, type Values } from './fields';

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
  const forget = (next: URLSearchParams, some: readonly Field[]) => some.forEach(({ name }) => next.delete(name));
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

/** A question: a profile, a preset of it, and the changed fields. */
export interface Question {
  profile: SimulationProfile;
  preset?: SimulationPreset;
  /** The load generator's trace. */
  trace?: string;
  /** The preset's values of the fields. */
  before: Values;
  /** The values of the fields. */
  values: Values;
  /** The fields in which the two differ. */
  changed: FieldName[];
  /** Errors by field. */
  errors: Partial<Values>;
  /** The request; undefined while a value is invalid. */
  request?: SimulationRequest;
}

/** The names in the address besides those of the fields. */
const PROFILE = 'profile';
const PRESET = 'preset';

/** Returns the question of a page's address; undefined where no profile can be simulated. */
export function questionOf(params: URLSearchParams, list: SimulationList): Question | undefined {
  const usable = list.profiles.filter(({ error }) => error === undefined);
  const profile =
    usable.find(({ name }) => name === params.get(PROFILE)) ?? usable.find(({ calibrated }) => calibrated) ?? usable[0];
  if (!profile) {
    return undefined;
  }
  const preset = profile.presets.find(({ name }) => name === params.get(PRESET)) ?? profile.presets[0];
  const base: SimulationRequest = { ...profile.defaults, ...preset?.request };
  const before = atLoad(valuesOf(base), params.get('load'));
  const given = fields.flatMap(({ name }) => (params.has(name) ? [[name, params.get(name) ?? ''] as const] : []));
  const values: Values = { ...before, ...Object.fromEntries(given) };
  const changed = fields.map(({ name }) => name).filter((name) => values[name] !== before[name]);
  const errors = check(values, {
    limits: list.limits,
    maxLevels: list.max_levels,
    speculations: profile.speculations.map(({ speculation }) => speculation),
    trace: list.trace,
  });
  const right = Object.keys(errors).length === 0;
  const request = right ? requestOf(base, values, list.trace, profile.defaults) : undefined;
  return { profile, preset, before, values, changed, errors, trace: list.trace, request };
}

/** Returns a request as a text that is the same for the same question. */
export function keyOf(request: SimulationRequest): string {
  return JSON.stringify(request, (_, value: unknown) =>
    typeof value === 'object' && value !== null && !Array.isArray(value)
      ? Object.fromEntries(Object.entries(value).sort(([a], [b]) => (a < b ? -1 : 1)))
      : value
  );
}
