import {
  type Limit,
  limits,
  patched,
  type State,
  type WorkloadPatch,
  workloadSettings,
} from '../../client';
import { decimalNumber, wholeNumber } from '../../lib/input';
import { valueAt, withValue } from '../../lib/path';

interface FieldInfo {
  /** Its path in a patch, in the state and in a problem of the API. */
  path: FieldName;
  width: number;
  wrong(text: string, limit: Limit): string | undefined;
}

/** The fields of the form. */
export type FieldName = (typeof patched)[number];

/** What stands in the fields. */
export type Values = Record<FieldName, string>;

/** The widths of fields whose labels need less or more room than most. */
const widths: Partial<Record<FieldName, number>> = { 'turns.min': 12, 'turns.max': 12, max_tokens: 17, start_rate: 22 };

/** The fields in their order. */
export const fields: FieldInfo[] = patched.map((path) => ({
  path,
  width: widths[path] ?? 19,
  wrong: workloadSettings[path].whole ? wholeNumber : decimalNumber,
}));

/** Returns the label of a field, with the meaning of 0. */
export function labelOf(path: FieldName): string {
  const { label, zero } = workloadSettings[path];
  return zero === undefined ? label : `${label} (0 = ${zero})`;
}

/** Returns the field that a problem of the API concerns. */
export function fieldOf(path: string | undefined): FieldName | undefined {
  return path === 'turns' ? 'turns.min' : fields.find((field) => field.path === path)?.path;
}

/** Returns the values in force. */
export function current({ shape, ...state }: State): Values {
  const all = { ...shape, ...state };
  return Object.fromEntries(fields.map(({ path }) => [path, String(valueAt(all, path) ?? '')])) as Values;
}

/** Errors by field. */
export function check(values: Values): Partial<Values> {
  const errors: Partial<Values> = {};
  for (const { path, wrong } of fields) {
    const error = wrong(values[path], limits[path]);
    if (error) {
      errors[path] = error;
    }
  }
  const most = values['turns.max'];
  if (!errors['turns.min'] && !errors['turns.max'] && Number(values['turns.min']) > Number(most)) {
    errors['turns.min'] = `At most ${most}`;
  }
  return errors;
}

/** Returns the changes; undefined without any. */
export function toPatch(values: Values, inForce: Values): WorkloadPatch | undefined {
  let patch: WorkloadPatch = {};
  for (const { path } of fields) {
    if (Number(values[path]) !== Number(inForce[path])) {
      patch = withValue(patch, path, Number(values[path]));
    }
  }
  if (patch.turns) {
    patch.turns = { min: Number(values['turns.min']), max: Number(values['turns.max']) }; // a range has both
  }
  return Object.keys(patch).length > 0 ? patch : undefined;
}
