import { type Limit, type LimitName, limits, type State, type WorkloadPatch } from '../../client';
import { decimalNumber, wholeNumber } from '../../lib/input';

/** The fields of the form. */
export type FieldName = 'turnsMin' | 'turnsMax' | 'openings' | 'maxTokens' | 'startRate' | 'targetRPS';

/** What stands in the fields. */
export type Values = Record<FieldName, string>;

interface FieldInfo {
  name: FieldName;
  label: string;
  /** As the API names it in a problem. */
  path: LimitName;
  unit?: string;
  width: number;
  wrong(text: string, limit: Limit): string | undefined;
}

/** The fields in their order. */
export const fields: FieldInfo[] = [
  { name: 'turnsMin', label: 'Minimum turns', path: 'turns.min', width: 12, wrong: wholeNumber },
  { name: 'turnsMax', label: 'Maximum turns', path: 'turns.max', width: 12, wrong: wholeNumber },
  { name: 'openings', label: 'Opening texts (0 = one each)', path: 'openings', width: 19, wrong: wholeNumber },
  { name: 'maxTokens', label: 'Longest answer', path: 'max_tokens', unit: 'tokens', width: 17, wrong: wholeNumber },
  {
    name: 'startRate',
    label: 'Start rate',
    path: 'start_rate',
    unit: 'conversations/s',
    width: 22,
    wrong: decimalNumber,
  },
  {
    name: 'targetRPS',
    label: 'Request cap (0 = none)',
    path: 'target_rps',
    unit: 'requests/s',
    width: 19,
    wrong: decimalNumber,
  },
];

/** The field that a problem of the API is about. */
export function fieldOf(path: string | undefined): FieldName | undefined {
  return path === 'turns' ? 'turnsMin' : fields.find((field) => field.path === path)?.name;
}

/** What is in force. */
export function current({ shape, start_rate, target_rps }: State): Values {
  return {
    turnsMin: String(shape.turns.min),
    turnsMax: String(shape.turns.max),
    openings: String(shape.openings ?? ''),
    maxTokens: String(shape.max_tokens),
    startRate: String(start_rate),
    targetRPS: String(target_rps),
  };
}

/** What is wrong, by field. */
export function check(values: Values): Partial<Values> {
  const errors: Partial<Values> = {};
  for (const { name, path, wrong } of fields) {
    const error = wrong(values[name], limits[path]);
    if (error) {
      errors[name] = error;
    }
  }
  if (!errors.turnsMin && !errors.turnsMax && Number(values.turnsMin) > Number(values.turnsMax)) {
    errors.turnsMin = `At most ${values.turnsMax}`;
  }
  return errors;
}

/** What is to change; undefined where nothing is. */
export function toPatch(values: Values, inForce: Values): WorkloadPatch | undefined {
  const changed = (...names: FieldName[]) => names.some((name) => Number(values[name]) !== Number(inForce[name]));
  const patch: WorkloadPatch = {
    ...(changed('turnsMin', 'turnsMax') && { turns: { min: Number(values.turnsMin), max: Number(values.turnsMax) } }),
    ...(changed('openings') && { openings: Number(values.openings) }),
    ...(changed('maxTokens') && { max_tokens: Number(values.maxTokens) }),
    ...(changed('startRate') && { start_rate: Number(values.startRate) }),
    ...(changed('targetRPS') && { target_rps: Number(values.targetRPS) }),
  };
  return Object.keys(patch).length > 0 ? patch : undefined;
}
