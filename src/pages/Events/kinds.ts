import type { EventKind } from '../../client';

/** The name of each kind of event. */
export const kindNames: Record<EventKind, string> = {
  start: 'Start',
  stop: 'Stop',
  step: 'Step',
  mode_change: 'Mode',
  settings: 'Settings',
  baseline: 'Baseline',
  sweep: 'Benchmark',
  member: 'Member',
};
