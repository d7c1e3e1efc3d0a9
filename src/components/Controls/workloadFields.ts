import {
  type Arrivals,
  type Limit,
  limits,
  patched,
  type State,
  type WorkloadPatch,
  workloadSettings,
} from '../../client';
import { decimalNumber, wholeNumber } from '../../lib/input';
import { kindOf, type LevelKind } from '../../lib/level';
import { valueAt, withValue } from '../../lib/path';
import { isRecorded } from '../Traffic';

interface FieldInfo {
  /** Its path in a patch, in the state and in a problem of the API. */
  path: NumberName;
  width: number;
  wrong(text: string, limit: Limit): string | undefined;
}

/** The fields of the form. */
export type FieldName = (typeof patched)[number];

type NumberName = Exclude<FieldName, 'arrivals'>;

/** What stands in the fields. */
export type Values = Record<FieldName, string>;

/** The widths of fields whose labels need less or more room than most. */
const widths: Partial<Record<FieldName, number>> = { 'turns.min': 12, 'turns.max': 12, max_tokens: 17, start_rate: 22 };

/** The fields with a number, in their order. */
const fields: FieldInfo[] = patched
  .filter((path) => path !== 'arrivals')
  .map((path) => ({
    path,
    width: widths[path] ?? 19,
    wrong: workloadSettings[path].whole ? wholeNumber : decimalNumber,
  }));

/** The settings that have an effect on a load of one kind only. */
const kinds: Partial<Record<FieldName, LevelKind>> = {
  start_rate: 'conversations',
  target_rps: 'conversations',
  burstiness: 'rate',
  max_inflight: 'rate',
};

/** The ways in which conversations come at a rate. */
export const arrivals: Array<{ value: Arrivals; label: string; description: string }> = [
  { value: 'constant', label: 'Constant', description: 'At equal intervals' },
  { value: 'poisson', label: 'Poisson', description: 'At random: each moment is as likely as any other' },
  { value: 'gamma', label: 'Gamma', description: 'In bursts below a burstiness of 1, more regular above' },
];

/** The settings of conversations about texts, which planned traffic does not have. */
const ofTexts: FieldName[] = ['turns.min', 'turns.max', 'openings'];

/** Returns the fields that have an effect on the load. */
export function fieldsOf({ concurrency, shape, traffic_shape }: State, values: Values): FieldInfo[] {
  const kind = kindOf(concurrency.target);
  return fields.filter(
    ({ path }) =>
      (kinds[path] ?? kind) === kind &&
      (path !== 'burstiness' || values.arrivals === 'gamma') &&
      !(shape.traffic && ofTexts.includes(path)) &&
      !(path === 'max_tokens' && !isRecorded(traffic_shape)) // a trace may have answers without a length
  );
}

/** Returns the label of a field, with the meaning of 0. */
export function labelOf(path: FieldName): string {
  const { label, zero } = workloadSettings[path];
  return zero === undefined ? label : `${label} (0 = ${zero})`;
}

/** Returns the field that a problem of the API concerns. */
export function fieldOf(path: string | undefined): FieldName | undefined {
  return path === 'turns' ? 'turns.min' : patched.find((field) => field === path);
}

/** Returns the values in force. */
export function current({ shape, ...state }: State): Values {
  const all = { ...shape, ...state };
  return Object.fromEntries(patched.map((path) => [path, String(valueAt(all, path) ?? '')])) as Values;
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
  if (values.arrivals !== inForce.arrivals) {
    patch.arrivals = values.arrivals as Arrivals;
  }
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
