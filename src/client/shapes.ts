// Written by `go test ./sidecar/api -update`, as part of `npm run generate`.

import type { ShapePreset, TrafficShape } from './schema';

/** A number of a shape of traffic. */
export type ShapeNumber = Exclude<keyof TrafficShape, 'preset' | 'mix'>;

/** What a form shows of a shape of traffic. */
export interface ShapeInfo {
  readonly label: string;
  readonly description: string;
  /** The numbers that have an effect on it. */
  readonly numbers: readonly ShapeNumber[];
}

/** The shapes by their presets. */
export const shapes: Record<ShapePreset, ShapeInfo> = {
  recorded: {
    label: 'Recorded',
    description: 'The workload behind the recorded results',
    numbers: [],
  },
  chat: {
    label: 'Chat',
    description: 'Conversations with the lengths and turns of ShareGPT',
    numbers: ['suffix_tokens', 'answer_tokens', 'turns', 'context_tokens'],
  },
  prefix: {
    label: 'Prefix',
    description: 'Single requests of groups with a shared prefix',
    numbers: ['groups', 'prefix_tokens', 'suffix_tokens', 'answer_tokens', 'zipf', 'turns', 'context_tokens'],
  },
  rag: {
    label: 'RAG',
    description: 'Short questions about long documents',
    numbers: ['groups', 'prefix_tokens', 'suffix_tokens', 'answer_tokens', 'zipf', 'turns', 'context_tokens'],
  },
  agent: {
    label: 'Agent',
    description: 'Many turns with results of tools, behind a shared system prompt',
    numbers: ['groups', 'prefix_tokens', 'suffix_tokens', 'answer_tokens', 'zipf', 'turns', 'context_tokens'],
  },
  'few-shot': {
    label: 'Few-shot',
    description: 'Short questions behind templates with examples',
    numbers: ['groups', 'prefix_tokens', 'suffix_tokens', 'answer_tokens', 'zipf', 'turns', 'context_tokens'],
  },
  batch: {
    label: 'Batch',
    description: 'Single requests that share nothing',
    numbers: ['suffix_tokens', 'answer_tokens', 'turns', 'context_tokens'],
  },
  mixed: {
    label: 'Mixed',
    description: 'Several of these, by weights',
    numbers: ['groups', 'prefix_tokens', 'suffix_tokens', 'answer_tokens', 'zipf', 'turns', 'context_tokens'],
  },
};

/** The labels and units of their numbers. */
export const shapeNumbers: Record<ShapeNumber, { readonly label: string; readonly unit?: string }> = {
  groups: { label: 'Groups' },
  prefix_tokens: { label: 'Shared prefix', unit: 'tokens' },
  suffix_tokens: { label: 'Added by a turn', unit: 'tokens' },
  answer_tokens: { label: 'Answer length', unit: 'tokens' },
  zipf: { label: 'Zipf exponent' },
  turns: { label: 'Turns' },
  context_tokens: { label: 'Longest context', unit: 'tokens' },
};
