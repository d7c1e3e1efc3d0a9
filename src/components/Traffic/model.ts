import { limits, type ShapePreset, type TrafficShape } from '../../client';
import { decimalNumber, wholeNumber } from '../../lib/input';

/** A number of a shape. */
export type NumberName = Exclude<keyof TrafficShape, 'preset' | 'mix'>;

/** What stands in the fields; an empty text is the number of the preset. */
export interface Values extends Partial<Record<NumberName, string>> {
  preset: ShapePreset;
  mix?: string;
}

interface Preset {
  label: string;
  description: string;
  /** The numbers that have an effect on it. */
  numbers: NumberName[];
}

const grouped: NumberName[] = ['groups', 'prefix_tokens', 'suffix_tokens', 'answer_tokens', 'zipf'];

/** The presets by their names in the API. */
export const presets: Record<ShapePreset, Preset> = {
  recorded: { label: 'Recorded', description: 'The workload behind the recorded results', numbers: [] },
  chat: {
    label: 'Chat',
    description: 'Conversations with the lengths and turns of ShareGPT',
    numbers: ['suffix_tokens', 'answer_tokens', 'turns', 'context_tokens'],
  },
  prefix: { label: 'Prefix', description: 'Single requests of groups with a shared prefix', numbers: grouped },
  rag: { label: 'RAG', description: 'Short questions about long documents', numbers: [...grouped, 'turns'] },
  agent: {
    label: 'Agent',
    description: 'Many turns with results of tools, behind a shared system prompt',
    numbers: ['prefix_tokens', 'suffix_tokens', 'answer_tokens', 'turns', 'context_tokens'],
  },
  'few-shot': { label: 'Few-shot', description: 'Short questions behind templates with examples', numbers: grouped },
  batch: {
    label: 'Batch',
    description: 'Single requests that share nothing',
    numbers: ['suffix_tokens', 'answer_tokens'],
  },
  mixed: { label: 'Mixed', description: 'Several of these, by weights', numbers: ['context_tokens'] },
};

/** The labels and units of the numbers. */
export const numbers: Record<NumberName, { label: string; unit?: string }> = {
  groups: { label: 'Groups' },
  prefix_tokens: { label: 'Shared prefix', unit: 'tokens' },
  suffix_tokens: { label: 'Added by a turn', unit: 'tokens' },
  answer_tokens: { label: 'Answer length', unit: 'tokens' },
  zipf: { label: 'Zipf exponent' },
  turns: { label: 'Turns' },
  context_tokens: { label: 'Longest context', unit: 'tokens' },
};

/** Whether conversations are about the texts of the corpus. */
export function isRecorded({ preset }: TrafficShape): boolean {
  return preset === undefined || preset === 'recorded';
}

/** Whether a problem of the API concerns a field of the form. */
export function isOfShape(path: string | undefined): boolean {
  return path?.startsWith('shape.') ?? false;
}

/** Returns the error of a number; undefined for a valid one and for none. */
export function errorOf(name: NumberName, text: string | undefined): string | undefined {
  if (!text) {
    return undefined;
  }
  return (name === 'zipf' ? decimalNumber : wholeNumber)(text, limits[`shape.${name}`]);
}

/** Returns the shape of the fields; undefined where one has an error. */
export function toShape(values: Values): TrafficShape | undefined {
  const shape: TrafficShape = { preset: values.preset };
  for (const name of presets[values.preset].numbers) {
    if (errorOf(name, values[name])) {
      return undefined;
    }
    if (values[name]) {
      shape[name] = Number(values[name]);
    }
  }
  if (values.preset === 'mixed' && values.mix) {
    shape.mix = values.mix;
  }
  return shape;
}

/** Returns what stands in the fields for a shape. */
export function toValues({ preset = 'recorded', mix, ...rest }: TrafficShape): Values {
  const values: Values = { preset, mix };
  for (const name of presets[preset].numbers) {
    values[name] = rest[name] ? String(rest[name]) : '';
  }
  return values;
}
