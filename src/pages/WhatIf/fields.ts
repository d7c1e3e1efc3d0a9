import {
  shapes,
  type SimulationLimit,
  type SimulationRequest,
  type WorkloadSettingName,
  workloadSettings,
} from '../../client';
import { arrivals, shapeField, shapeOptions } from '../../components/Traffic';
import { plain } from '../../lib/format';
import { decimalNumber, wholeNumber } from '../../lib/input';
import { kindOf, levelOf, rateLimit, valueOf, type Level, type LevelKind } from '../../lib/level';
import { valueAt, withValue } from '../../lib/path';

/** The group of a field. */
export type Group = 'workload' | 'cluster' | 'router' | 'computed';

interface Common {
  /** As the page's address calls it. Dynamo's own switches have their own names. */
  name: FieldName;
  label: string;
  /** Dynamo's name of it, where it is a switch of its command line. */
  flag?: string;
  group: Group;
  /** Its name in the API's limits and problems. */
  path: string;
}

/** A number, as a slider over usual values and as an input for any other. */
export interface NumberField extends Common {
  kind: 'number';
  /** Whether only whole numbers are valid. */
  whole: boolean;
  unit?: string;
  /** The slider's values, in its order. */
  stops: number[];
  /** The label of a number with a special meaning. */
  words?: Record<number, string>;
}

/** Something that is on or off. */
interface SwitchField extends Common {
  kind: 'switch';
  /** What the API has where it is on. */
  on: boolean;
}

/** One of several values. */
interface ChoiceField extends Common {
  kind: 'choice';
  /** Without them, the kinds of speculation that the profile offers. */
  options?: Option[];
}

interface Option {
  value: string;
  label: string;
  description?: string;
}

/** A field of the form. */
export type Field = NumberField | SwitchField | ChoiceField;

type More = Partial<Pick<NumberField, 'path' | 'unit' | 'words' | 'flag'>>;

/** A number. Its path in the API is its name, unless there is another one. */
function amount<Name extends string>(group: Group, name: Name, label: string, stops: number[], more: More = {}) {
  return { kind: 'number', whole: false, group, name, label, path: name as string, stops, ...more } as const;
}

/** A whole number. */
function count<Name extends string>(group: Group, name: Name, label: string, stops: number[], more: More = {}) {
  return { ...amount(group, name, label, stops, more), whole: true };
}

/** The arguments of a number that is a setting of the workload. */
function workload<Name extends string>(name: Name, setting: WorkloadSettingName, stops: number[], more: More = {}) {
  const { label, unit, zero } = workloadSettings[setting];
  const words = zero === undefined ? undefined : { 0: zero };
  return ['workload' as const, name, label, stops, { path: setting as string, unit, words, ...more }] as const;
}

/** A number of a shape; 0 leaves that of the preset. */
function ofShape<Name extends `shape_${string}`>(name: Name, stops: number[]) {
  const number = name.slice('shape_'.length) as Parameters<typeof shapeField>[0];
  const { label, unit, path } = shapeField(number);
  return {
    ...amount('workload', name, label, [0, ...stops], { path, unit, words: { 0: 'the shape’s own' } }),
    whole: number !== 'zipf',
  };
}

/** One of several values; without options, the kinds of speculation that the profile offers. */
function choice<Name extends string>(group: Group, name: Name, label: string, options?: Option[], path: string = name) {
  return { kind: 'choice', group, name, label, path, options } as const;
}

/** A switch. By default, the API has true where it is on. */
function toggle<Name extends string>(group: Group, name: Name, label: string, path: string = name, on = true) {
  return { kind: 'switch', group, name, label, path, on, flag: path === name ? undefined : `--${name}` } as const;
}

/** What from, to and every are for rates, where the preset has conversations, and the other way round. */
const usualLevels: Record<LevelKind, { from: string; to: string; every: string }> = {
  conversations: { from: '60', to: '180', every: '20' },
  rate: { from: '1', to: '4', every: '1' },
};

const loads = [
  { value: 'conversations', label: 'Conversations', description: 'As many are in progress' },
  { value: 'rate', label: 'Rate', description: 'As many begin in a second, whatever the cluster does' },
];

const LEVELS = [10, 20, 40, 60, 80, 100, 120, 140, 160, 180, 200, 240, 280, 320, 360, 480, 600];
const TURNS = [1, 2, 3, 4, 5, 6, 8, 10, 15, 20];
const TOKENS = [50_000, 100_000, 150_000, 200_000, 300_000, 400_000, 600_000, 800_000, 1_200_000];

const table = [
  count('cluster', 'workers', 'Workers', [1, 2, 3, 4, 5, 6, 8, 10, 12, 16, 20, 24, 32, 50]),
  count('cluster', 'max_batch_size', 'Batch size', [8, 16, 32, 48, 64, 96, 128, 192, 256, 512], { unit: 'sequences' }),
  count('cluster', 'block_size', 'Block size', [16, 32, 64, 128, 256, 512], { unit: 'tokens' }),
  count('cluster', 'kv_tokens', 'KV cache per worker', TOKENS, { unit: 'tokens' }),
  choice('cluster', 'speculation', 'Speculation'),
  toggle('workload', 'trace', 'The trace of the load generator'),
  choice('workload', 'shape', 'Shape', shapeOptions, 'shape.preset'),
  ofShape('shape_groups', [8, 64, 256, 600, 1000, 4000]),
  ofShape('shape_prefix_tokens', [500, 1000, 2000, 4000, 8000, 16_000]),
  ofShape('shape_suffix_tokens', [30, 100, 250, 500, 1000, 2000]),
  ofShape('shape_answer_tokens', [50, 100, 200, 400, 800]),
  ofShape('shape_zipf', [0.5, 0.8, 1, 1.2, 1.5]),
  ofShape('shape_turns', [1, 2, 5, 10, 20, 50]),
  ofShape('shape_context_tokens', [8000, 16_000, 32_000, 64_000, 128_000]),
  count(...workload('openings', 'openings', [1, 3, 10, 30, 100, 300, 1000, 0])),
  count(
    ...workload('opening_tokens', 'opening_tokens', [0, 500, 1000, 2000, 4000, 8000, 16_000, 32_000], {
      words: { 0: 'as recorded' },
    })
  ),
  count(...workload('turns_min', 'turns.min', TURNS)),
  count(...workload('turns_max', 'turns.max', TURNS)),
  amount(...workload('answer_tokens', 'output_tokens.mean', [50, 100, 200, 400, 600, 800, 1000, 2000])),
  count(...workload('max_tokens', 'max_tokens', [128, 256, 512, 1024, 2048, 4096])),
  amount(...workload('question_tokens', 'question_tokens.mean', [5, 12, 25, 50, 100, 250, 500, 1000])),
  amount(...workload('think_time', 'think_time', [0, 1, 2, 5, 10, 20, 30, 60])),
  amount(...workload('start_rate', 'start_rate', [1, 2, 5, 10, 20, 50, 100])),
  choice('workload', 'arrivals', 'Arrivals', arrivals),
  amount(...workload('burstiness', 'burstiness', [0.1, 0.25, 0.5, 1, 2, 4])),
  count(...workload('max_inflight', 'max_inflight', [50, 100, 200, 500, 1000, 2000])),
  amount('router', 'overlap_weight', 'Overlap weight', [0, 0.25, 0.5, 1, 1.5, 2, 3, 5, 10]),
  amount('router', 'temperature', 'Temperature', [0, 0.1, 0.2, 0.3, 0.5, 0.7, 1, 2]),
  amount(
    'router',
    'router-decode-active-request-weight',
    'Cost of a request in progress',
    [0, 1, 2, 5, 10, 20, 50, 100],
    {
      flag: '--router-decode-active-request-weight',
      path: 'router_decode_active_request_weight',
      unit: 'blocks',
    }
  ),
  toggle(
    'router',
    'router-track-output-blocks',
    'Count the blocks of answers in progress',
    'router_track_output_blocks'
  ),
  toggle('router', 'no-router-assume-kv-reuse', 'Assume that no blocks are reused', 'router_assume_kv_reuse', false),
  choice('computed', 'load', 'Kind of load', loads, 'levels'),
  amount('computed', 'from', 'From', LEVELS, { path: 'levels' }),
  amount('computed', 'to', 'To', LEVELS, { path: 'levels' }),
  amount('computed', 'every', 'Step', [5, 10, 20, 40, 60, 100], { path: 'levels' }),
  count('computed', 'seeds', 'Runs per point', [1, 2, 3, 4, 6, 8, 12]),
] as const;

/** What of a question a person can change. */
export type FieldName = (typeof table)[number]['name'];

/** The fields in their order. */
export const fields: readonly Field[] = table;

/** What stands in the fields: numbers as text, switches as true or false. */
export type Values = Record<FieldName, string>;

const ofTexts: FieldName[] = [
  'openings',
  'opening_tokens',
  'turns_min',
  'turns_max',
  'answer_tokens',
  'max_tokens',
  'question_tokens',
];
const levels: FieldName[] = ['from', 'to', 'every'];
const RATES = [0.5, 1, 2, 3, 4, 6, 8, 12, 16, 20, 30, 50];

/** Returns the fields that have an effect on a question. Only with a trace, there is one to choose. */
export function fieldsOf(values: Values, trace: string | undefined): Field[] {
  const isTrace = trace !== undefined && values.trace === 'true';
  const isRate = values.load === 'rate';
  const shape = values.shape as keyof typeof shapes;
  return fields
    .filter(({ name, path }) => {
      switch (name) {
        case 'trace':
          return trace !== undefined;
        case 'shape':
          return !isTrace;
        case 'arrivals':
          return isRate && !isTrace;
        case 'burstiness':
          return isRate && !isTrace && values.arrivals === 'gamma';
        case 'max_inflight':
          return isRate;
        case 'start_rate':
          return !isRate;
      }
      if (path.startsWith('shape.')) {
        return !isTrace && shapes[shape]?.numbers.some((number) => path === `shape.${number}`);
      }
      return !ofTexts.includes(name) || (!isTrace && shape === 'recorded');
    })
    .map((field) => (field.name === 'trace' ? { ...field, label: `The load generator’s ${trace}` } : field))
    .map((field) =>
      isRate && field.kind === 'number' && levels.includes(field.name) ? { ...field, stops: RATES, unit: '/s' } : field
    );
}

/** Returns the field that a problem of the API concerns. */
export function fieldOf(path: string | undefined): FieldName | undefined {
  return path === undefined
    ? undefined
    : fields.find((field) => field.path === path || field.path.startsWith(`${path}.`))?.name;
}

/** Returns the values of the fields for a request that has every field. */
export function valuesOf(request: SimulationRequest): Values {
  const levels = (request.levels ?? []).map(valueOf);
  const values = fields.map((field) => {
    const value = valueAt(request, field.path) ?? (field.path.startsWith('shape.') ? 0 : '');
    return [field.name, String(field.kind === 'switch' ? value === field.on : value)];
  });
  return {
    ...(Object.fromEntries(values) as Values),
    load: kindOf(request.levels?.[0] ?? 0),
    from: String(levels[0] ?? ''),
    to: String(levels.at(-1) ?? ''),
    every: String(levels.length > 1 ? levels[1] - levels[0] : 10),
  };
}

/** Returns the values of a preset for a kind of load: of its own kind its levels, else usual ones. */
export function atLoad(values: Values, load: string | null): Values {
  const usual = load === 'rate' || load === 'conversations' ? usualLevels[load] : {};
  return load === values.load ? values : { ...values, ...usual };
}

/**
 * Returns the request of a base, which has every field, with the changed values of the fields that have an effect, and
 * the defaults of those that have none, since the API refuses others. The values must be valid.
 */
export function requestOf(
  base: SimulationRequest,
  values: Values,
  trace: string | undefined,
  defaults: SimulationRequest
): SimulationRequest {
  const before = valuesOf(base);
  const same = (['load', ...levels] as const).every((name) => values[name] === before[name]);
  const used = fieldsOf(values, trace);
  let request = base;
  for (const { name, path } of fields) {
    if (valueAt(base, path) !== undefined && !used.some((field) => field.name === name)) {
      request = withValue(request, path, valueAt(defaults, path));
    }
  }
  for (const field of used) {
    const value = read(field, values[field.name]);
    if (value !== 0 || !field.path.startsWith('shape.')) {
      request = withValue(request, field.path, value);
    }
  }
  return { ...request, levels: same ? base.levels : levelsOf(values, values.load as LevelKind) };
}

function read(field: Field, text: string): number | boolean | string {
  switch (field.kind) {
    case 'number':
      return Number(text);
    case 'switch':
      return (text === 'true') === field.on;
    case 'choice':
      return text;
  }
}

/** Returns levels of a kind from one to another in steps. The last is included even where it lies between two steps. */
function levelsOf({ from, to, every }: Values, kind: LevelKind): Level[] {
  const first = Number(from);
  const last = Number(to);
  const step = Number(every);
  const all = Array.from({ length: Math.floor((last - first) / step + 1e-9) + 1 }, (_, i) =>
    levelOf(kind, first + i * step)
  );
  const end = levelOf(kind, last);
  return all.at(-1) === end ? all : [...all, end];
}

/** The limits of the values. */
interface Bounds {
  /** By the API's paths. */
  limits: Record<string, SimulationLimit>;
  maxLevels: number;
  /** The kinds of speculation that the profile offers. */
  speculations: string[];
  /** The load generator's trace. */
  trace?: string;
}

/** Errors by field. */
export function check(values: Values, bounds: Bounds): Partial<Values> {
  const { maxLevels, trace } = bounds;
  const errors: Partial<Values> = {};
  for (const field of fieldsOf(values, trace)) {
    const error = wrong(field, values[field.name], bounds, values.load === 'rate');
    if (error) {
      errors[field.name] = error;
    }
  }
  if (!errors.turns_min && !errors.turns_max && Number(values.turns_min) > Number(values.turns_max)) {
    errors.turns_min = `At most ${values.turns_max}`;
  }
  if (errors.from || errors.to || errors.every) {
    return errors;
  }
  if (Number(values.from) > Number(values.to)) {
    errors.from = `At most ${values.to}`;
  } else if ((Number(values.to) - Number(values.from)) / Number(values.every) > maxLevels - 1) {
    errors.every = `At most ${maxLevels} levels: use a larger step`;
  }
  return errors;
}

function wrong(field: Field, text: string, { limits, speculations }: Bounds, isRate: boolean): string | undefined {
  switch (field.kind) {
    case 'switch':
      return undefined;
    case 'choice':
      return (field.options?.map(({ value }) => value) ?? speculations).includes(text)
        ? undefined
        : `Not available${field.options ? '' : ' in this profile'}`;
    case 'number': {
      if (levels.includes(field.name)) {
        const step = field.name === 'every' ? { ...limits.levels, min: 1 } : limits.levels;
        return isRate ? decimalNumber(text, rateLimit) : wholeNumber(text, step);
      }
      const limit = limits[field.path] ?? { min: 0, max: Number.MAX_SAFE_INTEGER };
      return (field.whole ? wholeNumber : decimalNumber)(text, limit);
    }
  }
}

/** Formats a value for readers: "one each", "12 tokens", "on". */
export function valueText(field: Field, text: string): string {
  if (field.kind !== 'number') {
    const option = field.kind === 'choice' && field.options?.find(({ value }) => value === text);
    return field.kind === 'switch' ? (text === 'true' ? 'on' : 'off') : option ? option.label : text;
  }
  const value = Number(text);
  if (text.trim() === '' || !Number.isFinite(value)) {
    return text;
  }
  return field.words?.[value] ?? `${plain(value)}${field.unit === undefined ? '' : ` ${field.unit}`}`;
}

/** Returns the slider's values with the current one inserted in order, and its index. */
export function stopsWith({ stops, words }: NumberField, value: number): { stops: number[]; at: number } {
  const at = stops.indexOf(value);
  if (at >= 0 || !Number.isFinite(value)) {
    return { stops, at: Math.max(0, at) };
  }
  const after = stops.findIndex((stop) => stop > value && !words?.[stop]);
  const place = after >= 0 ? after : stops.map((stop) => !words?.[stop]).lastIndexOf(true) + 1;
  return { stops: [...stops.slice(0, place), value, ...stops.slice(place)], at: place };
}
