import type { EventKind } from '../../client';

/** What each kind of event is called. */
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
