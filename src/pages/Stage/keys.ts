/** The keys of the stage view with what they do, in the order of the list. */
export const stageKeys: Array<[keys: string, does: string]> = [
  ['Space', 'Starts or stops the workload'],
  ['K', 'Changes to KV-aware routing, after a confirmation'],
  ['R', 'Changes to round-robin routing, after a confirmation'],
  ['↑ ↓', 'More or fewer conversations, by one increment'],
  ['?', 'Shows these keys'],
  ['Esc', 'Leaves the stage view'],
];
