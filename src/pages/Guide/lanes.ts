import type { LaneSnapshot } from '../../client';
import { milliseconds, number } from '../../lib/format';
import { modeName } from '../../lib/names';
import { clock } from '../../lib/time';
import type { Rules } from './rules';
import type { Lanes, Progress } from './seen';

/** The steps that require two routers with the same conversations. */
export const laneRules: Rules = {
  both: {
    seen: ({ both }) => both && `At ${clock(both.at)}: ${apart(both)}.`,
    missing: () => 'Needs two different modes. “As configured” on the page “Side by side” restores them.',
  },
  'both-settled': {
    seen: ({ bothSettled }) =>
      bothSettled &&
      `At ${clock(bothSettled.at)}, ${apart(bothSettled)}: TTFT p95 ` +
        `${bothSettled.ttft.map((ttft) => milliseconds(ttft)).join(' and ')}.`,
    missing: ({ both }) => (both ? 'Not both lanes have settled yet.' : 'Needs both routers in different modes.'),
  },
};

function apart({ concurrency, modes }: Lanes): string {
  return `${number(concurrency)} conversations on each, ${modes.map(modeName).join(' and ')}`;
}

/** Updates the progress from both lanes. A mode that is not known is compared with none. */
export function observeLanes(before: Progress, [a, b]: LaneSnapshot[], at: string): Partial<Progress> {
  const modes: Lanes['modes'] = [a.state.mode, b.state.mode];
  const run = [a, b].every(({ state }) => state.phase === 'running' && state.mode !== 'unknown');
  if (!run || modes[0] === modes[1]) {
    return {};
  }
  const now = { at, concurrency: a.state.concurrency.target, modes };
  const settled = [a, b].every(({ state }) => !state.settling);
  const [ta, tb] = [a, b].map(({ baseline }) => baseline.live.ttft.p95);
  return {
    both: before.both ?? now,
    bothSettled:
      before.bothSettled ?? (settled && ta !== undefined && tb !== undefined ? { ...now, ttft: [ta, tb] } : undefined),
  };
}
