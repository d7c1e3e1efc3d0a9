import type { LaneSnapshot, Live } from '../../client';
import { milliseconds, number, percent } from '../../lib/format';
import { modeName } from '../../lib/names';
import { besideHit, besideTTFT } from './beside';
import { medians } from './progress';
import type { Beside, Progress, Settled } from './seen';

/** One thing to show, and whether it was seen. */
export interface Item {
  id: string;
  title: string;
  /** What to say with it. */
  say: string;
  done: boolean;
  /** Why it is ticked, or what is missing. */
  why: string;
}

interface Rule {
  id: string;
  title: string;
  say: string;
  /** Why it is ticked; nothing where it was not seen. */
  seen(progress: Progress): string | undefined;
  /** What is missing while it runs. */
  missing(progress: Progress, lane: LaneSnapshot): string;
  /** Whether it can be missing something while nothing runs. */
  needsRun: boolean;
}

/** A time of day as the person before the screen reads it. */
function clock(at: string): string {
  return new Date(at).toLocaleTimeString();
}

const rules: Rule[] = [
  {
    id: 'started',
    title: 'Start the workload',
    say: 'Many conversations, all going on at the same time.',
    needsRun: false,
    seen: ({ started }) =>
      started &&
      `Running since ${clock(started.at)}: ${number(started.concurrency)} conversations, ${modeName(started.mode)}.`,
    missing: () => 'Press Start.',
  },
  {
    id: 'baseline',
    title: 'Let round-robin settle',
    say: 'This is what a plain balancer does. Remember the slowest first tokens.',
    needsRun: true,
    seen: ({ settled }) => settledText(newest(settled, 'round_robin')),
    missing: (_, { state, baseline }) =>
      state.mode === 'round_robin'
        ? toGo(baseline.settling_for_seconds)
        : 'Change the mode to round-robin and wait until it has settled.',
  },
  {
    id: 'changed',
    title: 'Change to KV-aware routing',
    say: 'Same GPUs, same model, same questions. Only the router thinks differently now.',
    needsRun: true,
    seen: ({ changed }) =>
      changed?.to === 'kv' ? `Changed from ${modeName(changed.from)} at ${clock(changed.at)}.` : undefined,
    missing: (_, { state }) =>
      state.mode === 'kv'
        ? 'It was KV-aware from the beginning. Change to round-robin and back.'
        : 'Change the mode to KV-aware.',
  },
  {
    id: 'settled',
    title: 'Let KV-aware routing settle',
    say: 'The caches are cold after a change. Give it a minute.',
    needsRun: true,
    seen: ({ settled }) => settledText(newest(settled, 'kv')),
    missing: (_, { state, baseline }) =>
      state.mode === 'kv' ? toGo(baseline.settling_for_seconds) : 'Change the mode to KV-aware.',
  },
  {
    id: 'improved',
    title: 'Show sooner first tokens',
    say: 'The slowest answers begin sooner, at the same load.',
    needsRun: true,
    seen: ({ improved }) => improved && `At ${clock(improved.at)}: ${ttftText(improved)}`,
    missing: improvementMissing,
  },
  {
    id: 'hit',
    title: 'Show the higher hit rate',
    say: 'More of every prompt was still in memory.',
    needsRun: true,
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
  {
    id: 'turns',
    title: 'Show later turns starting sooner',
    say: 'Open a conversation: the third answer begins sooner than the first, though its prompt is longer.',
    needsRun: true,
    seen: ({ turns }) =>
      turns &&
      `At ${clock(turns.at)}: median TTFT ${milliseconds(turns.first)} in the first turn, ${milliseconds(turns.later)} in the third.`,
    missing: turnsMissing,
  },
  {
    id: 'raised',
    title: 'Raise the concurrency',
    say: 'More people at once, the same machines.',
    needsRun: true,
    seen: ({ raised }) => raised && `From ${number(raised.from)} to ${number(raised.to)} at ${clock(raised.at)}.`,
    missing: ({ lowest }) => `Move the slider up from ${number(lowest?.concurrency)}.`,
  },
  {
    id: 'slo',
    title: 'Meet both SLOs',
    say: 'Inside the promise: first token and every token after it.',
    needsRun: true,
    seen: ({ slo }) =>
      slo &&
      `At ${clock(slo.at)}, ${number(slo.concurrency)} conversations: TTFT p95 ${milliseconds(slo.ttft)}, TPOT p95 ${milliseconds(slo.tpot)}.`,
    missing: (_, { baseline: { live, settling } }) =>
      settling
        ? 'Settling: nothing is judged yet.'
        : `Not met now: TTFT p95 ${milliseconds(live.ttft.p95)}, TPOT p95 ${milliseconds(live.tpot.p95)}.`,
  },
  {
    id: 'errors',
    title: 'No errors',
    say: 'Nothing was dropped on the way.',
    needsRun: true,
    seen: ({ answered, errors }) =>
      answered && errors.total === 0 ? 'Turns have ended, and none has failed.' : undefined,
    missing: ({ errors }) => (errors.total > 0 ? `${number(errors.total)} failed.` : 'No turn has ended yet.'),
  },
];

/** The demonstration's flow, each step with why it is ticked or what is missing. */
export function checklist(progress: Progress, live: Live): Item[] {
  return rules.map((rule) => {
    const why = rule.seen(progress);
    const { id, title, say } = rule;
    return { id, title, say, done: why !== undefined, why: why ?? whatIsMissing(rule, progress, live) };
  });
}

function whatIsMissing({ missing, needsRun }: Rule, progress: Progress, { state, lane }: Live): string {
  if (!lane) {
    return state.status === 'loading' ? 'Waiting for the load generator.' : 'Nothing can be seen now.';
  }
  return needsRun && lane.state.phase !== 'running' ? 'The workload does not run.' : missing(progress, lane);
}

function newest(settled: Progress['settled'], mode: string): Settled | undefined {
  const of = Object.entries(settled).flatMap(([key, one]) => (key.startsWith(`${mode}/`) ? [one] : []));
  return of.sort((a, b) => Date.parse(b.at) - Date.parse(a.at))[0];
}

function settledText(settled: Settled | undefined): string | undefined {
  return (
    settled &&
    `At ${clock(settled.at)}, ${number(settled.concurrency)} conversations: TTFT p95 ${milliseconds(settled.ttft)}, hit rate ${percent(settled.hit)}.`
  );
}

function toGo(seconds: number): string {
  return `Settling: ${number(Math.ceil(seconds))} s to go.`;
}

function ttftText({ live, other, word }: Beside): string {
  return `TTFT p95 ${milliseconds(live)} live, ${milliseconds(other)} under round-robin (${word}).`;
}

function hitText({ live, other, word }: Beside): string {
  return `${percent(live)} live, ${percent(other)} under round-robin (${word}).`;
}

function isSettledKV({ state }: LaneSnapshot): boolean {
  return state.mode === 'kv' && !state.settling;
}

/** Few starters are soon cached everywhere, so that the first turn is fast, too. */
function turnsMissing(_: Progress, lane: LaneSnapshot): string {
  const { first, later } = medians(lane);
  return isSettledKV(lane) && first !== undefined && later !== undefined
    ? `Not clearly now: median TTFT ${milliseconds(first)} in the first turn, ${milliseconds(later)} in the third.`
    : 'Needs KV-aware routing, settled, and answers of first and third turns.';
}

function improvementMissing(progress: Progress, lane: LaneSnapshot): string {
  const found = isSettledKV(lane) ? besideTTFT(progress, lane, '') : undefined;
  if (!found) {
    return 'Needs KV-aware routing, settled, and a round-robin figure at the same concurrency.';
  }
  if (!found.shown) {
    return `No difference shown: ${ttftText(found)}`;
  }
  return `Worse now, and say so: ${ttftText(found)}`;
}
