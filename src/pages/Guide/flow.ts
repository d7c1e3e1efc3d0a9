import type { LaneSnapshot, Live } from '../../client';
import { milliseconds, number, percent } from '../../lib/format';
import { modeName, speculationName } from '../../lib/names';
import { isOffered, isPhase, PHASES, type Phase } from '../../lib/phases';
import { capital } from '../../lib/text';
import { clock } from '../../lib/time';
import { hasTwin } from '../lane';
import { besideHit, besideTokens, besideTTFT } from './beside';
import file from './content/checklist.md';
import { elsewhere } from './figures';
import { laneRules } from './lanes';
import { parse, type Part } from './parse';
import { CLEARLY, hasOwnDocuments, medians } from './progress';
import { newestFirst, settledText, settlingTime, type Rules } from './rules';
import { meanSpread, type Beside, type Progress, type Settled } from './seen';

/** One step of the demonstration, and whether it was observed. */
export interface Item {
  id: string;
  title: string;
  /** The text to present with it. */
  say: string;
  done: boolean;
  /** Why it is ticked, or what is missing. */
  why: string;
}

const routingRules: Rules = {
  started: {
    seen: ({ started }) =>
      started &&
      `Running since ${clock(started.at)}: ${number(started.concurrency)} conversations, ${modeName(started.mode)}.`,
    missing: () => 'Press Start.',
  },
  baseline: {
    seen: ({ settled }) => settledText(newestFirst(settled, 'round_robin/').at(0)),
    missing: (_, { state, baseline }) =>
      state.mode === 'round_robin'
        ? settlingTime(baseline)
        : (reportModeHint(state) ?? 'Change the mode to round-robin and wait until it has settled.'),
  },
  changed: {
    seen: ({ changed }) =>
      changed?.to === 'kv' ? `Changed from ${modeName(changed.from)} at ${clock(changed.at)}.` : undefined,
    missing: (_, { state }) =>
      state.mode === 'kv'
        ? 'It was KV-aware from the beginning. Switch to round-robin and back.'
        : (reportModeHint(state) ?? 'Change the mode to KV-aware.'),
  },
  settled: {
    seen: ({ settled }) => settledText(newestFirst(settled, 'kv/').at(0)),
    missing: (_, { state, baseline }) =>
      state.mode === 'kv' ? settlingTime(baseline) : 'Change the mode to KV-aware.',
  },
  improved: {
    seen: ({ improved }) => improved && `At ${clock(improved.at)}: ${ttftText(improved)}`,
    missing: improvementMissing,
  },
  hit: {
    seen: ({ hit }) => hit && `At ${clock(hit.at)}: ${hitText(hit)}`,
    missing: (progress, lane) => {
      if (lane.kv.not_reported) {
        return `Cannot be shown here: ${lane.kv.not_reported}.`;
      }
      const found = isSettledKV(lane) ? besideHit(progress, lane, '') : undefined;
      return found
        ? `Not higher now: ${hitText(found)}`
        : 'Needs KV-aware routing, settled, and a round-robin hit rate at the same concurrency.';
    },
  },
  tokens: {
    seen: ({ tokens }) => tokens && `At ${clock(tokens.at)}: ${tokensText(tokens)}`,
    missing: tokensMissing,
  },
  uneven: {
    seen: ({ settled }) => {
      const found = spreads(settled);
      return found && found.roundRobin <= CLEARLY * found.kv ? capital(spreadText(found)) : undefined;
    },
    missing: ({ settled }) => {
      const found = spreads(settled);
      return found
        ? `Not clearly so: ${spreadText(found)}`
        : 'Needs about a minute of settled in-flight counts in both modes at the same concurrency.';
    },
  },
  raised: {
    seen: ({ raised }) => raised && `From ${number(raised.from)} to ${number(raised.to)} at ${clock(raised.at)}.`,
    missing: ({ lowest }) => `Move the slider up from ${number(lowest?.concurrency)}.`,
  },
  slo: {
    seen: ({ slo }) =>
      slo &&
      `At ${clock(slo.at)}, ${number(slo.concurrency)} conversations: TTFT p95 ` +
        `${milliseconds(slo.ttft)}, TPOT p95 ${milliseconds(slo.tpot)}.`,
    missing: (_, { baseline: { live, settling } }) =>
      settling
        ? 'Settling: not evaluated yet.'
        : `Not met now: TTFT p95 ${milliseconds(live.ttft.p95)}, TPOT p95 ${milliseconds(live.tpot.p95)}.`,
  },
  errors: {
    seen: ({ answered, errors }) =>
      answered && errors.total === 0 ? 'Turns have ended, and none has failed.' : undefined,
    missing: ({ errors }) => (errors.total > 0 ? `${number(errors.total)} failed.` : 'No turn has ended yet.'),
  },
};

/** The demonstration: its stories, each with its steps. */
export const [story] = parse(file);

/** The steps of one part of the demonstration. */
interface Group {
  title: string;
  text: string;
  items: Item[];
}

/**
 * Returns the stories, each step with why it is ticked or what is missing. The steps of two lanes are included where
 * there are two.
 */
export function checklist(progress: Progress, live: Live): Group[] {
  const there = story.parts.filter(({ needs }) => needs !== 'twin' || hasTwin(live));
  return there.map(({ title, blocks, parts }) => ({
    title,
    text: blocks[0].text,
    items: parts.map((step) => toItem(step, progress, live)),
  }));
}

function toItem({ id, title, blocks }: Part, progress: Progress, live: Live): Item {
  const why = rules[id].seen(progress);
  const say = blocks[0].text;
  return { id, title, say, done: why !== undefined, why: why ?? missingStep(id, progress, live) };
}

function missingStep(id: string, progress: Progress, { state, lane }: Live): string {
  if (!lane) {
    return state.status === 'loading' ? 'Waiting for the load generator.' : 'No live data.';
  }
  const isAtRest = id !== 'started' && lane.state.phase !== 'running';
  return isAtRest ? 'The workload is not running.' : rules[id].missing(progress, lane);
}

function ttftText({ live, other, word }: Beside): string {
  return `TTFT p95 ${milliseconds(live)} live, ${milliseconds(other)} under round-robin (${word}).`;
}

function hitText({ live, other, word }: Beside): string {
  return `${percent(live)} live, ${percent(other)} under round-robin (${word}).`;
}

/** Returns the step before a change of mode. A mode that is not known is compared with none. */
function reportModeHint({ mode }: LaneSnapshot['state']): string | undefined {
  return mode === 'unknown' ? 'Set the routing mode of this server, in the workload controls.' : undefined;
}

function isSettledKV({ state }: LaneSnapshot): boolean {
  return state.mode === 'kv' && !state.settling;
}

function tokensMissing(_: Progress, lane: LaneSnapshot): string {
  const found = isSettledKV(lane) ? besideTokens(lane, '') : undefined;
  if (!found) {
    return 'Needs KV-aware routing, settled, and a round-robin figure at the same concurrency.';
  }
  return `${found.shown ? 'Lower now; say so' : 'Not certain'}: ${tokensText(found)}`;
}

function tokensText({ live, other, word }: Beside): string {
  return `${number(live)} tokens/s live, ${number(other)} under round-robin (${word}).`;
}

interface Spreads {
  concurrency: number;
  kv: number;
  roundRobin: number;
}

/** Returns the mean spreads of the newest KV-aware step that has a counterpart under round-robin. */
function spreads(settled: Progress['settled']): Spreads | undefined {
  const pairs = newestFirst(settled, 'kv/').flatMap((step) => {
    const key = Object.keys(settled).find((one) => settled[one] === step) ?? '';
    const kv = meanSpread(step);
    const roundRobin = meanSpread(settled[key.replace(/^kv/, 'round_robin')]);
    return kv === undefined || roundRobin === undefined ? [] : [{ concurrency: step.concurrency, kv, roundRobin }];
  });
  return pairs.at(0);
}

function spreadText({ concurrency, kv, roundRobin }: Spreads): string {
  return (
    `at ${number(concurrency)} conversations the busiest and the least busy worker differ by ` +
    `${number(kv, 1)} requests on average; under round-robin by ${number(roundRobin, 1)}.`
  );
}

function improvementMissing(progress: Progress, lane: LaneSnapshot): string {
  const found = isSettledKV(lane) ? besideTTFT(progress, lane, '') : undefined;
  if (!found) {
    return 'Needs KV-aware routing, settled, and a round-robin figure at the same concurrency.';
  }
  if (!found.shown) {
    return `Not certain: ${ttftText(found)}`;
  }
  return `Worse now; say so: ${ttftText(found)}`;
}

/** The scene in which every conversation has its own opening, so that only routing decides what is cached. */
const documentRules: Rules = {
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
    return settlingTime(lane.baseline);
  }
  return first === undefined || second === undefined
    ? 'Needs answers to first and second turns.'
    : `Not the case now: median TTFT ${milliseconds(first)} in the first turn, ${milliseconds(second)} in the second.`;
}

/** The rules of the speculation story: a phase is ticked once a settled step was measured in it. */
const phaseRules: Rules = Object.fromEntries(
  PHASES.map((phase) => [
    `phase-${phase.id}`,
    { seen: (progress) => phaseResult(phase, progress), missing: (_, lane) => missingPhase(phase, lane) },
  ])
);

const prefixOf = ({ mode, speculation }: Phase) => `${mode}/${speculation}/`;

function phaseResult(phase: Phase, { settled }: Progress): string | undefined {
  const last = newestFirst(settled, prefixOf(phase)).at(0);
  return (
    last && [phaseFigures(last), speculationText(last), precedingPhase(phase, settled, last)].filter(Boolean).join(' ')
  );
}

function phaseFigures({ at, concurrency, ttft, itl, tokens }: Settled): string {
  return (
    `At ${clock(at)}, ${number(concurrency)} conversations: TTFT p95 ${milliseconds(ttft)}, ` +
    `median ITL ${milliseconds(itl)}, ${number(tokens)} tokens/s.`
  );
}

function speculationText({ acceptance, tokensPerStep }: Settled): string | undefined {
  return acceptance === undefined
    ? undefined
    : `Accepted: ${percent(acceptance, 0)} of guesses, ${number(tokensPerStep, 2)} tokens per step.`;
}

/** Returns the preceding phase at the same concurrency. */
function precedingPhase(phase: Phase, settled: Progress['settled'], { concurrency }: Settled): string | undefined {
  const before = PHASES[PHASES.indexOf(phase) - 1];
  const other = before && newestFirst(settled, prefixOf(before)).find((one) => one.concurrency === concurrency);
  return other && `Phase ${before.id}: TTFT p95 ${milliseconds(other.ttft)}, median ITL ${milliseconds(other.itl)}.`;
}

function missingPhase(phase: Phase, { state, baseline, target }: LaneSnapshot): string {
  if (isPhase(phase, state)) {
    return settlingTime(baseline);
  }
  const wanted = `${modeName(phase.mode)} with speculation “${speculationName(phase.speculation)}”`;
  if (!isOffered(phase, state)) {
    return `The mode driver “${state.driver}” does not offer ${wanted}.`;
  }
  const note = target.kind === 'simulated' ? ' The simulated cluster’s timing is then assumed: not calibrated.' : '';
  return `Change to ${wanted}.${note}`;
}

const rules: Rules = { ...routingRules, ...laneRules, ...documentRules, ...phaseRules };
