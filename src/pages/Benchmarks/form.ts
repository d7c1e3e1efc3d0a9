import type { ModeState, Problem, SimulationLimit, SweepKind, SweepList, SweepRequest } from '../../client';
import { number, span } from '../../lib/format';
import { decimalNumber, wholeNumber } from '../../lib/input';
import { kindOf, parseLevel, rangesOf, rateLimit, valueOf, type Level } from '../../lib/level';
import { modeKey, modeText, speculationName } from '../../lib/names';
import { valueAt, withValue } from '../../lib/path';

import { isShare, metricName } from '../../components/SweepResult';

/** The fields of the form by their paths in the API. A trial has fields of their own for its first two modes. */
export type FieldName = Exclude<keyof SweepRequest, 'kind' | 'slo'> | 'slo.ttft' | 'slo.tpot' | 'a' | 'b';

/** The values of the fields, as text. Items of a list are separated by commas. */
export type Values = Partial<Record<FieldName, string>>;

/** A field of the form. */
export interface Field {
  name: FieldName;
  label: string;
  entry: 'text' | 'number' | 'levels' | 'mode' | 'modes' | 'metric' | 'question' | 'order' | 'lanes' | 'caches';
  kinds: SweepKind[];
  /** Whether it is under "More settings". */
  more?: boolean;
  /** The factor from the API's value to the entered one; 1 if absent. */
  factor?: number;
  unit?: string;
  whole?: boolean;
  help?: string;
}

const all: SweepKind[] = ['trial', 'sweep', 'capacity'];
const MINUTE = 60;

function field(
  name: FieldName,
  label: string,
  entry: Field['entry'],
  kinds: SweepKind[],
  more: Pick<Field, 'more' | 'factor' | 'unit' | 'whole' | 'help'> = {}
): Field {
  return { name, label, entry, kinds, ...more };
}

/** All fields, in the order of the form. */
const fields: Field[] = [
  field('a', 'A (reference)', 'mode', ['trial']),
  field('b', 'B (compared with A)', 'mode', ['trial']),
  field('modes', 'Also compare', 'modes', ['trial']),
  field('modes', 'Modes', 'modes', ['sweep', 'capacity']),
  field('question', 'Question', 'question', ['trial']),
  field('levels', 'Concurrency', 'levels', ['trial'], { help: 'Conversations, or a rate of new ones, such as 12/s.' }),
  field('levels', 'Levels', 'levels', ['sweep'], {
    help: 'Numbers of conversations, or rates of new ones such as 12/s, separated by commas.',
  }),
  field('levels', 'Initial levels', 'levels', ['capacity'], {
    help: 'Numbers of conversations, or rates such as 2/s. The search stays between the lowest and the highest.',
  }),
  field('primary', 'Primary metric (decides)', 'metric', ['trial']),
  field('smallest', 'Smallest difference of interest', 'number', ['trial'], {
    factor: 100,
    unit: '%',
    help: 'If the true difference is smaller than this, the trial ends with “no difference”.',
  }),
  field('repeats', 'Repeats', 'number', ['sweep'], { whole: true, help: 'Spans of each level and mode.' }),
  field('slo.ttft', 'SLO: TTFT p95', 'number', ['capacity'], { factor: 1000, unit: 'ms' }),
  field('slo.tpot', 'SLO: TPOT p95', 'number', ['capacity'], { factor: 1000, unit: 'ms' }),
  field('resolution', 'Resolution', 'number', ['capacity'], {
    help: 'Precision of the answer, in conversations or in those per second.',
  }),
  field('title', 'Title', 'text', all, { more: true, help: 'Empty: generated from the question.' }),
  field('order', 'Order', 'order', ['sweep'], { more: true }),
  field('together', 'Two lanes', 'lanes', ['trial']),
  field('together', 'Two lanes', 'lanes', ['sweep'], {
    help: 'With an even number of repeats, each mode runs equally often on both lanes.',
  }),
  field('caches', 'Caches', 'caches', ['trial']),
  field('warm_up', 'Warm-up', 'number', ['sweep', 'trial'], {
    more: true,
    unit: 's',
    help:
      'Sweep: from full concurrency until a span starts counting. Trial: what does not count at least, after the ' +
      'initial conversations of a span have ended or at the beginning of a slot.',
  }),
  field('span', 'Span length', 'number', all, {
    more: true,
    unit: 's',
    help: 'A span counts for at least this long and at least five times the median latency.',
  }),
  field('snapshots', 'Snapshots', 'number', ['sweep'], {
    more: true,
    whole: true,
    help: 'Number of 60 s windows whose percentiles are averaged.',
  }),
  field('max_time', 'At most', 'number', ['trial', 'capacity'], {
    more: true,
    factor: 1 / MINUTE,
    unit: 'min',
    help: 'If there is no decision by then, it ends undecided.',
  }),
  field('slo.ttft', 'SLO: TTFT p95', 'number', ['trial', 'sweep'], { more: true, factor: 1000, unit: 'ms' }),
  field('slo.tpot', 'SLO: TPOT p95', 'number', ['trial', 'sweep'], { more: true, factor: 1000, unit: 'ms' }),
  field('seed', 'Seed', 'text', all, {
    more: true,
    help: 'A whole number; the same seed gives the same order and the same texts. A trial draws one where it is empty.',
  }),
];

/** Returns the fields of a kind. */
export function fieldsOf(kind: SweepKind): Field[] {
  return fields.filter(({ kinds }) => kinds.includes(kind));
}

/** Whether a field has an effect: on a trial of several arms a question, on any other one lanes and caches. */
function hasEffect({ entry, kinds }: Field, values: Values): boolean {
  const isSeveral = kinds.includes('trial') && othersOf(values).length > 0;
  return entry === 'question' ? isSeveral : !isSeveral || (entry !== 'lanes' && entry !== 'caches');
}

/** Whether a field offers a choice. The lanes do where there are two, and more modes of a trial where there are any. */
export function isOffered(field: Field, list: SweepList, values: Values): boolean {
  const { entry, kinds } = field;
  return (
    hasEffect(field, values) &&
    (entry !== 'lanes' || list.defaults.some(({ together }) => together)) &&
    (entry !== 'modes' || !kinds.includes('trial') || list.modes.length > 2)
  );
}

/** Returns the modes of a trial beside A and B. */
function othersOf({ a, b, modes = '' }: Values): string[] {
  return split(modes).filter((mode) => mode !== a && mode !== b);
}

/** A choice of a field. */
interface Option {
  value: string;
  label: string;
  description?: string;
}

const option = (value: string, label: string, description: string): Option => ({ value, label, description });

const options: Partial<Record<Field['entry'], Option[]>> = {
  question: [
    option('best', 'Which arm is the best?', 'An arm leaves the trial once another one is better.'),
    option('order', 'How does each pair compare?', 'An arm leaves the trial once all of its pairs are decided.'),
  ],
  order: [
    option('interleaved', 'Alternating modes', 'Drift of the machines affects all modes equally.'),
    option('mode_after_mode', 'One mode after the other', 'Fewer mode changes, but drift affects the result.'),
  ],
  caches: [
    option(
      'auto',
      'Warm where possible',
      'Cold where changing the arm restarts something, or arms have their own engines.'
    ),
    option('warm', 'Warm, shared by both', 'One run whose arm changes every minute or so. Decides in fewer minutes.'),
    option('cold', 'Cold before each span', 'Each span restarts the conversations on emptied caches.'),
  ],
  lanes: [
    option(
      'true',
      'Both at the same time',
      'One on each lane, swapped for the next pair if both lanes can switch modes.'
    ),
    option('false', 'Alternating', 'On the main lane only; the twin is idle.'),
  ],
};

/** Returns the choices of a field. */
export function optionsOf(entry: Field['entry'], list: SweepList): Option[] {
  switch (entry) {
    case 'mode':
    case 'modes':
      return list.modes.map((mode) => ({ value: modeKey(mode), label: offerText(mode, list.modes) }));
    case 'metric':
      return list.metrics.map((value) => ({ value, label: metricName(value) }));
    default:
      return options[entry] ?? [];
  }
}

/** Labels a mode, with its speculation where the name alone would occur twice. */
function offerText(mode: ModeState, all: ModeState[]): string {
  const name = modeText(mode);
  const isAlone = all.filter((one) => modeText(one) === name).length === 1;
  return isAlone ? name : `${name}, speculation ${speculationName(mode.speculation).toLowerCase()}`;
}

/** Returns the default values of the fields. */
export function defaultsOf(request: SweepRequest): Values {
  const { kind, modes = [], question = 'best' } = request;
  const list = modes.map(modeKey);
  const values = fieldsOf(kind).map(({ name, factor }) => [name, textOf(valueAt(request, name), factor)]);
  return {
    ...(Object.fromEntries(values) as Values),
    question,
    ...(kind === 'trial'
      ? { a: list[0] ?? '', b: list[1] ?? '', modes: list.slice(2).join(', ') }
      : { modes: list.join(', ') }),
  };
}

function textOf(value: unknown, factor = 1): string {
  if (typeof value === 'number') {
    return formatExact(value * factor);
  }
  return Array.isArray(value) ? value.join(', ') : String(value ?? '');
}

/** Formats a number without the noise of binary fractions. */
function formatExact(value: number): string {
  return String(Number(value.toPrecision(12)));
}

/** Errors by the names of the fields. */
export type Errors = Partial<Record<FieldName, string>>;

/** Checks the fields against the API's limits. */
export function errorsOf(kind: SweepKind, values: Values, limits: SweepList['limits']): Errors {
  const errors: Errors = {};
  for (const field of fieldsOf(kind)) {
    const error = errorOf(kind, field, values, limits[field.name]);
    if (error) {
      errors[field.name] = error;
    }
  }
  return errors;
}

function errorOf(kind: SweepKind, { entry, name, factor = 1, whole }: Field, values: Values, limit?: SimulationLimit) {
  const { [name]: value = '', together } = values;
  const isTogether = together === 'true';
  switch (entry) {
    case 'levels':
      return levelsError(kind, split(value), limit);
    case 'modes':
      return kind === 'trial' ? othersError(values) : modesError(kind, split(value).length, isTogether);
    case 'order':
      return kind === 'sweep' && isTogether && value === 'mode_after_mode'
        ? 'Alternating modes, since both run at the same time'
        : undefined;
    case 'number': {
      const scaled = limit && {
        ...limit,
        min: Number(formatExact(limit.min * factor)),
        max: Number(formatExact(limit.max * factor)),
      };
      return scaled && (whole ? wholeNumber(value, scaled) : decimalNumber(value, scaled));
    }
    case 'text':
      return name === 'seed' && !(kind === 'trial' && value.trim() === '') && !/^\d{1,20}$/.test(value.trim())
        ? 'A whole number, not below 0'
        : undefined;
    default:
      return undefined;
  }
}

const MOST_ARMS = 9;

function othersError(values: Values): string | undefined {
  const others = othersOf(values);
  if (others.length > 0 && values.a === values.b) {
    return 'Each one once; only a trial of two arms may compare an arm with itself';
  }
  return others.length + 2 > MOST_ARMS ? `At most ${MOST_ARMS} arms` : undefined;
}

function modesError(kind: SweepKind, n: number, isTogether: boolean): string | undefined {
  if (n === 0) {
    return 'At least one mode';
  }
  if (kind === 'sweep' && isTogether && n !== 2) {
    return 'Two modes, one on each lane';
  }
  return kind === 'capacity' && n > 2 ? 'One or two modes' : undefined;
}

function levelsError(kind: SweepKind, levels: string[], limit: SimulationLimit | undefined): string | undefined {
  const wrong = limit && levels.map((level) => levelError(level, limit)).find((error) => error !== undefined);
  if (wrong) {
    return levels.length > 1 ? `Each level: ${wrong.toLowerCase()}` : wrong;
  }
  if (new Set(levels.map(parseLevel)).size < levels.length) {
    return 'Each level once';
  }
  if (rangesOf(toLevels(levels)).length > 1) {
    return 'Levels of one kind: conversations, or rates';
  }
  if (kind === 'trial') {
    return levels.length === 1 ? undefined : 'One level';
  }
  const least = kind === 'capacity' ? 2 : 1;
  return levels.length < least ? `At least ${least === 1 ? 'one level' : 'two levels'}` : undefined;
}

function levelError(text: string, limit: SimulationLimit): string | undefined {
  const level = parseLevel(text) ?? 0;
  const value = valueOf(level);
  if (kindOf(level) === 'conversations') {
    return wholeNumber(text, limit);
  }
  return value >= rateLimit.min && value <= rateLimit.max
    ? undefined
    : `A rate from ${rateLimit.min} to ${rateLimit.max}/s`;
}

function toLevels(texts: string[]): Level[] {
  return texts.map(parseLevel).filter((level) => level !== undefined);
}

/** Splits a typed list into its items. */
export function split(value: string): string[] {
  return value
    .split(/[,;\n]|(?<=\d|\/s)\s+(?=\d)/)
    .map((item) => item.trim())
    .filter((item) => item !== '');
}

/** Returns the request of fields without errors. */
export function toRequest(kind: SweepKind, values: Values): SweepRequest {
  const modes = kind === 'trial' ? [values.a ?? '', values.b ?? '', ...othersOf(values)] : split(values.modes ?? '');
  let request: SweepRequest = { kind, modes: modes.map(toMode) };
  for (const field of fieldsOf(kind)) {
    const text = (values[field.name] ?? '').trim();
    if (text !== '' && field.entry !== 'mode' && field.entry !== 'modes' && hasEffect(field, values)) {
      request = withValue(request, field.name, read(field, text));
    }
  }
  return request;
}

function read({ entry, factor = 1 }: Field, text: string): unknown {
  switch (entry) {
    case 'number':
      return Number(formatExact(Number(text) / factor));
    case 'levels':
      return toLevels(split(text));
    case 'lanes':
      return text === 'true';
    default:
      return text;
  }
}

function toMode(key: string): ModeState {
  const [mode, speculation, ...words] = key.split(' ');
  const arm = words.length > 0 ? words.join(' ') : undefined;
  return { arm, mode, speculation } as ModeState;
}

/** Returns the field at which a problem is shown; undefined where the form lacks it. */
export function fieldOfProblem(kind: SweepKind, problem: Problem | undefined): FieldName | undefined {
  const named = problem?.field?.replace(/^modes\..*/, 'modes');
  const at = kind === 'trial' && named === 'modes' ? 'b' : named;
  return fieldsOf(kind).find(({ name }) => name === at)?.name;
}

/** Returns the unit of a field's number. Differences of ratios are in points. */
export function unitOf({ name, unit }: Field, values: Values): string | undefined {
  return name === 'smallest' && isShare(values.primary ?? '') ? 'points' : unit;
}

/** Returns the duration, computed from the request alone. */
export function durationText(request: SweepRequest): string {
  const { kind, levels = [], modes = [], repeats = 1, warm_up: warm = 0, span: counted = 0 } = request;
  if (kind !== 'sweep') {
    return `At most ${span(request.max_time ?? 0)}; it ends automatically once decided.`;
  }
  const spans = levels.length * modes.length * repeats;
  const each = warm + counted;
  const [pairs, atOnce] = request.together ? [spans / 2, ', two at a time'] : [spans, ''];
  const what = `${number(spans)} ${spans === 1 ? 'span' : 'spans'} of at least ${span(each)}${atOnce}`;
  return `${what}: ${span(pairs * each)}, plus the time for the changes between them.`;
}
