import type { LaneSnapshot } from '../../client';
import { milliseconds, number, percent } from '../../lib/format';
import { modeName, speculationName } from '../../lib/names';
import { isOffered, isPhase, PHASES, type Phase } from '../../lib/phases';
import { clock } from '../../lib/time';
import { newestFirst, settlingTime, type Rules } from './rules';
import type { Progress, Settled } from './seen';

/** The rules of the speculation story: a phase is ticked once a settled step was measured in it. */
export const phaseRules: Rules = Object.fromEntries(
  PHASES.map((phase) => [
    `phase-${phase.id}`,
    { seen: (progress) => phaseResult(phase, progress), missing: (_, lane) => missing(phase, lane) },
  ])
);

const stored = ({ mode, speculation }: Phase) => `${mode}/${speculation}/`;

function phaseResult(phase: Phase, { settled }: Progress): string | undefined {
  const last = newestFirst(settled, stored(phase)).at(0);
  return last && [figures(last), speculative(last), precedingPhase(phase, settled, last)].filter(Boolean).join(' ');
}

function figures({ at, concurrency, ttft, itl, tokens }: Settled): string {
  return (
    `At ${clock(at)}, ${number(concurrency)} conversations: TTFT p95 ${milliseconds(ttft)}, ` +
    `median ITL ${milliseconds(itl)}, ${number(tokens)} tokens/s.`
  );
}

function speculative({ acceptance, tokensPerStep }: Settled): string | undefined {
  return acceptance === undefined
    ? undefined
    : `Accepted: ${percent(acceptance, 0)} of guesses, ${number(tokensPerStep, 2)} tokens per step.`;
}

/** Returns the preceding phase at the same concurrency. */
function precedingPhase(phase: Phase, settled: Progress['settled'], { concurrency }: Settled): string | undefined {
  const before = PHASES[PHASES.indexOf(phase) - 1];
  const other = before && newestFirst(settled, stored(before)).find((one) => one.concurrency === concurrency);
  return other && `Phase ${before.id}: TTFT p95 ${milliseconds(other.ttft)}, median ITL ${milliseconds(other.itl)}.`;
}

function missing(phase: Phase, { state, baseline, target }: LaneSnapshot): string {
  if (isPhase(phase, state)) {
    return settlingTime(baseline.settling_for_seconds);
  }
  const wanted = `${modeName(phase.mode)} with speculation “${speculationName(phase.speculation)}”`;
  if (!isOffered(phase, state)) {
    return `The mode driver “${state.driver}” does not offer ${wanted}.`;
  }
  const note = target.kind === 'simulated' ? ' The simulated cluster’s timing is then assumed: not calibrated.' : '';
  return `Change to ${wanted}.${note}`;
}
