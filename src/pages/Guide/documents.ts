import type { LaneSnapshot } from '../../client';
import { milliseconds, number } from '../../lib/format';
import { clock } from '../../lib/time';
import { elsewhere } from './figures';
import { hasOwnDocuments, medians } from './progress';
import { settlingTime, type Rules } from './rules';

/** The scene in which every conversation has its own opening, so that only routing decides what is cached. */
export const documentRules: Rules = {
  own: {
    seen: ({ own }) =>
      own && `Since ${clock(own.at)}, ${number(own.concurrency)} conversations, each with its own opening text.`,
    missing: (_, { state }) =>
      `${number(state.shape.openings)} opening texts are in circulation. Set “Opening texts” to “One each”.`,
  },
  turns: {
    seen: ({ turns }) =>
      turns &&
      `At ${clock(turns.at)}: median TTFT ${milliseconds(turns.first)} in the first turn, ` +
        `${milliseconds(turns.later)} in the third.`,
    missing: turnsMissing,
  },
  blind: {
    seen: ({ blind }) =>
      blind &&
      `At ${clock(blind.at)}, under round-robin: median TTFT ${milliseconds(blind.first)} in ` +
        `the first turn, ${milliseconds(blind.later)} in the second.`,
    missing: blindMissing,
  },
};

/** Few shared texts are soon cached everywhere, which makes the first turn fast, too. */
function turnsMissing(_: unknown, lane: LaneSnapshot): string {
  const { first, later } = medians(lane);
  if (lane.state.mode !== 'kv' || lane.state.settling || first === undefined || later === undefined) {
    return 'Needs KV-aware routing, settled, and answers to first and third turns.';
  }
  const why = hasOwnDocuments(lane) ? '' : ' With shared texts, first turns are fast as well.';
  return (
    `Not clearly now: median TTFT ${milliseconds(first)} in the first turn, ` +
    `${milliseconds(later)} in the third.${why}`
  );
}

function blindMissing(_: unknown, lane: LaneSnapshot): string {
  const { first, second } = medians(lane);
  if (!hasOwnDocuments(lane) || lane.state.mode !== 'round_robin') {
    const odds = elsewhere(lane);
    return (
      'Needs round-robin and one document per ' +
      `visitor.${odds ? ` A second turn then lands on another worker ${odds}.` : ''}`
    );
  }
  if (lane.state.settling) {
    return settlingTime(lane.baseline.settling_for_seconds);
  }
  return first === undefined || second === undefined
    ? 'Needs answers to first and second turns.'
    : `Not the case now: median TTFT ${milliseconds(first)} in the first turn, ${milliseconds(second)} in the second.`;
}
