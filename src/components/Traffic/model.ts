import {
  limits,
  patched,
  type Limit,
  type ShapeNumber,
  shapeNumbers,
  type ShapePreset,
  shapes,
  type State,
  type TrafficShape,
  type WorkloadPatch,
  workloadSettings,
} from '../../client';
import { decimalNumber, wholeNumber } from '../../lib/input';
import { kindOf, levelOf, rateLimit, type Level, type LevelKind } from '../../lib/level';
import { valueAt, withValue } from '../../lib/path';

/** The fields of the form by their paths in a patch, which the API's problems name. */
export type FieldName = (typeof patched)[number] | `shape.${keyof TrafficShape}` | 'ramp.from' | 'ramp.seconds';

/** What stands in the fields. An empty text is the number of the preset, or no ramp. */
export type Values = Partial<Record<FieldName, string>>;

/** A field with a number or a text. */
export interface TrafficField {
  path: FieldName;
  label: string;
  unit?: string;
  placeholder?: string;
  width: number;
  /** Returns the error of a text that is not empty; undefined for a valid one. */
  wrong?(text: string): string | undefined;
  isOptional?: boolean;
  /** Whether it says when conversations begin, not what they send. */
  isLoad?: boolean;
}

/** The ways in which conversations come at a rate. */
export const arrivals = [
  { value: 'constant', label: 'Constant', description: 'At equal intervals' },
  { value: 'poisson', label: 'Poisson', description: 'At random: each moment is as likely as any other' },
  { value: 'gamma', label: 'Gamma', description: 'In bursts below a burstiness of 1, more regular above' },
];

/** The shapes of traffic. */
export const shapeOptions = Object.entries(shapes).map(([value, { label, description }]) => ({
  value: value as ShapePreset,
  label,
  description,
}));

/** Returns the field of a number of a shape. */
export function shapeField(name: ShapeNumber): TrafficField {
  const check = name === 'zipf' ? decimalNumber : wholeNumber;
  const path = `shape.${name}` as const;
  return {
    ...shapeNumbers[name],
    path,
    width: 21,
    placeholder: 'preset',
    isOptional: true,
    wrong: (text) => check(text, limits[path]),
  };
}

const MIX: TrafficField = {
  path: 'shape.mix',
  label: 'Parts and weights',
  width: 36,
  placeholder: 'chat=6,rag=2,agent=1,batch=1',
  isOptional: true,
};

/** The widths of fields whose labels need less or more room than most. */
const widths: Partial<Record<FieldName, number>> = { 'turns.min': 12, 'turns.max': 12, max_tokens: 17, start_rate: 22 };

function settingField(path: Exclude<(typeof patched)[number], 'arrivals'>, isLoad = false): TrafficField {
  const { label, unit, zero, whole } = workloadSettings[path];
  return {
    path,
    unit,
    isLoad,
    label: zero === undefined ? label : `${label} (0 = ${zero})`,
    width: widths[path] ?? 19,
    wrong: (text) => (whole ? wholeNumber : decimalNumber)(text, limits[path]),
  };
}

function rampField(path: 'ramp.from' | 'ramp.seconds', label: string, unit: string, limit: Limit): TrafficField {
  const wrong = (text: string) => decimalNumber(text, limit);
  return { path, label, unit, width: 14, placeholder: 'no ramp', isOptional: true, isLoad: true, wrong };
}

const atKind: Record<LevelKind, TrafficField[]> = {
  conversations: [settingField('start_rate', true), settingField('target_rps', true)],
  rate: [
    settingField('burstiness', true),
    rampField('ramp.from', 'Ramp from', '/s', rateLimit),
    rampField('ramp.seconds', 'Ramp within', 's', limits['ramp.seconds']),
    settingField('max_inflight', true),
  ],
};

/** The settings of conversations about texts, which planned traffic does not have. */
const ofTexts = (['turns.min', 'turns.max', 'openings', 'max_tokens'] as const).map((path) => settingField(path));

/** Where the form is used. */
export interface Load {
  level: Level;
  /** Whether conversations are those of a trace. */
  isTrace: boolean;
}

/** Returns the fields that have an effect on the load, besides preset and arrivals. */
export function fieldsOf(load: Load, values: Values): TrafficField[] {
  const preset = presetOf(values);
  const content = [
    ...shapes[preset].numbers.map(shapeField),
    ...(preset === 'mixed' ? [MIX] : []),
    ...(preset === 'recorded' ? ofTexts : []),
  ];
  const isDrawn = (path: FieldName) => hasArrivals(load) && (path !== 'burstiness' || values.arrivals === 'gamma');
  return [
    ...(load.isTrace ? [] : content),
    ...atKind[kindOf(load.level)].filter(
      ({ path }) => isDrawn(path) || !(path === 'burstiness' || path.startsWith('ramp.'))
    ),
  ];
}

/** Whether arrivals are drawn. */
export function hasArrivals({ level, isTrace }: Load): boolean {
  return kindOf(level) === 'rate' && !isTrace;
}

/** Whether a lane runs a trace. */
export function isTrace({ traffic_shape: { preset = 'recorded' }, shape }: State): boolean {
  return preset === 'recorded' && shape.traffic !== undefined;
}

export function presetOf(values: Values): ShapePreset {
  return (values['shape.preset'] ?? 'recorded') as ShapePreset;
}

/** Returns the field that a problem of the API concerns. */
export function fieldOf(path: string | undefined): FieldName | undefined {
  if (path === 'turns' || path === 'ramp') {
    return path === 'turns' ? 'turns.min' : 'ramp.from';
  }
  const isKnown = patched.some((name) => name === path) || /^(shape|ramp)\./.test(path ?? '');
  return isKnown ? (path as FieldName) : undefined;
}

/** Returns the values in force. The ramp of a load is not known. */
export function current({ shape, traffic_shape, ...state }: State): Values {
  const all = { ...shape, ...state };
  const { preset = 'recorded', ...numbers } = traffic_shape;
  return Object.fromEntries([
    ...patched.map((path) => [path, String(valueAt(all, path) ?? '')]),
    ['shape.preset', preset],
    ...Object.entries(numbers).map(([name, value]) => [`shape.${name}`, value ? String(value) : '']),
  ]) as Values;
}

/** Errors by field. */
export function check(fields: TrafficField[], values: Values): Values {
  const errors: Values = {};
  for (const { path, wrong, isOptional } of fields) {
    const text = values[path] ?? '';
    const error = text === '' && isOptional ? undefined : wrong?.(text);
    if (error) {
      errors[path] = error;
    }
  }
  const most = values['turns.max'];
  if (!errors['turns.min'] && !errors['turns.max'] && Number(values['turns.min']) > Number(most)) {
    errors['turns.min'] = `At most ${most}`;
  }
  if (Boolean(values['ramp.from']) !== Boolean(values['ramp.seconds'])) {
    errors[values['ramp.from'] ? 'ramp.seconds' : 'ramp.from'] ??= 'Needed for a ramp';
  }
  return errors;
}

/** Returns the changes to what is in force; undefined without any. The fields must be without errors. */
export function toPatch(load: Load, values: Values, inForce: Values): WorkloadPatch | undefined {
  let patch: WorkloadPatch = {};
  const has = (path: FieldName) => (values[path] ?? '') !== (inForce[path] ?? '');
  const fields = fieldsOf(load, values);
  for (const { path } of fields.filter(({ path }) => patched.some((name) => name === path))) {
    if (Number(values[path]) !== Number(inForce[path])) {
      patch = withValue(patch, path, Number(values[path]));
    }
  }
  if (patch.turns) {
    patch.turns = { min: Number(values['turns.min']), max: Number(values['turns.max']) }; // a range has both
  }
  if (hasArrivals(load) && has('arrivals')) {
    patch.arrivals = values.arrivals as WorkloadPatch['arrivals'];
  }
  const ofShape = fields.filter(({ path }) => path.startsWith('shape.'));
  if (has('shape.preset') || ofShape.some(({ path }) => has(path))) {
    patch.shape = { preset: presetOf(values) };
    for (const { path } of ofShape.filter(({ path }) => values[path])) {
      patch = withValue(patch, path, path === MIX.path ? values[path] : Number(values[path]));
    }
  }
  if (kindOf(load.level) === 'rate' && values['ramp.from']) {
    patch.concurrency = load.level;
    patch.ramp = { from: levelOf('rate', Number(values['ramp.from'])), seconds: Number(values['ramp.seconds']) };
  }
  return Object.keys(patch).length > 0 ? patch : undefined;
}
