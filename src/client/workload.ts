// Written by `go test ./sidecar/api -update`, as part of `npm run generate`.

/** What is the same of a setting of a workload in every form. */
export interface WorkloadSetting {
  readonly label: string;
  readonly unit?: string;
  /** What 0 means. */
  readonly zero?: string;
  /** Only whole numbers are valid. */
  readonly whole?: boolean;
}

const table = {
  concurrency: { label: 'Concurrency' },
  'turns.min': { label: 'Minimum turns', whole: true },
  'turns.max': { label: 'Maximum turns', whole: true },
  openings: { label: 'Opening texts', zero: 'one each', whole: true },
  opening_tokens: { label: 'Opening length', unit: 'tokens' },
  max_tokens: { label: 'Longest answer', unit: 'tokens', whole: true },
  'output_tokens.mean': { label: 'Answer length', unit: 'tokens', zero: 'the longest' },
  'output_tokens.cv': { label: 'Variation of answers' },
  'question_tokens.mean': { label: 'Question length', unit: 'tokens' },
  'question_tokens.cv': { label: 'Variation of questions' },
  start_rate: { label: 'Start rate', unit: 'conversations/s' },
  target_rps: { label: 'Request cap', unit: 'requests/s', zero: 'none' },
  arrivals: { label: 'Arrivals' },
  burstiness: { label: 'Burstiness' },
  max_inflight: { label: 'Most turns in flight', whole: true },
  think_time: { label: 'Think time', unit: 's' },
} satisfies Record<string, WorkloadSetting>;

/** The path of a setting, as the API's problems name it. */
export type WorkloadSettingName = keyof typeof table;

/** The settings of a workload. */
export const workloadSettings: Record<WorkloadSettingName, WorkloadSetting> = table;

/** The settings that a form changes while the workload runs, in its order. */
export const patched = [
  'turns.min',
  'turns.max',
  'openings',
  'max_tokens',
  'start_rate',
  'target_rps',
  'arrivals',
  'burstiness',
  'max_inflight',
] as const satisfies WorkloadSettingName[];
