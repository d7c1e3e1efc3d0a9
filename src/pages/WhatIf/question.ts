import type { SimulationList, SimulationPreset, SimulationProfile, SimulationRequest } from '../../client';
import { check, fields, requestOf, valuesOf, type FieldName, type Values } from './fields';

/** A question: a profile, a preset of it, and the changed fields. */
export interface Question {
  profile: SimulationProfile;
  preset?: SimulationPreset;
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
export const PROFILE = 'profile';
export const PRESET = 'preset';

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
  const before = valuesOf(base);
  const given = fields.flatMap(({ name }) => (params.has(name) ? [[name, params.get(name) ?? ''] as const] : []));
  const values: Values = { ...before, ...Object.fromEntries(given) };
  const changed = fields.map(({ name }) => name).filter((name) => values[name] !== before[name]);
  const errors = check(values, {
    limits: list.limits,
    maxLevels: list.max_levels,
    speculations: profile.speculations.map(({ speculation }) => speculation),
  });
  const right = Object.keys(errors).length === 0;
  return { profile, preset, before, values, changed, errors, request: right ? requestOf(base, values) : undefined };
}

/** Returns a request as a text that is the same for the same question. */
export function keyOf(request: SimulationRequest): string {
  return JSON.stringify(request, (_, value: unknown) =>
    typeof value === 'object' && value !== null && !Array.isArray(value)
      ? Object.fromEntries(Object.entries(value).sort(([a], [b]) => (a < b ? -1 : 1)))
      : value
  );
}
