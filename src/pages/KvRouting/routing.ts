import type { RoutingCandidate as Candidate, RoutingDecision as Decision } from '../../client';
import { modeName } from '../../lib/names';

export type { Candidate, Decision };

/** The source of decisions that the router does not report: the load generator's own account. */
export const INFERRED = 'inferred';

/** The key that identifies a decision. */
export function keyOf({ request_id, seconds }: Decision): string {
  return `${request_id}@${seconds}`;
}

/** Returns a request's conversation and the number of its turn: ids are "<conversation>-<turn>". */
export function requestOf({ request_id }: Decision): { conversation: string; turn: string } {
  const at = request_id.lastIndexOf('-');
  return { conversation: request_id.slice(0, Math.max(0, at)), turn: request_id.slice(at + 1) };
}

/** Returns the conversation's own number: the last part of its id. */
export function shortId(conversation: string): string {
  return conversation.slice(conversation.lastIndexOf('-') + 1);
}

/** Returns the candidate that got the request. */
export function chosenOf(decision: Decision): Candidate | undefined {
  return decision.candidates[decision.chosen];
}

/** Returns the prompt tokens that a worker held according to the router. */
export function heldTokens(decision: Decision, candidate: Candidate): number {
  return Math.min(decision.prompt_tokens, candidate.overlap_blocks * decision.block_tokens);
}

/** Returns the prompt tokens that the request leaves to be computed on a worker. */
export function toCompute(decision: Decision, candidate: Candidate): number {
  return decision.prompt_tokens - heldTokens(decision, candidate);
}

/**
 * Derives the overlap weight, which no call reports, from the costs: cost − decode blocks over prefill blocks. It is
 * undefined where no worker has anything to prefill, or where the candidates contradict each other.
 */
export function overlapWeight({ candidates, block_tokens }: Decision): number | undefined {
  const weights = candidates
    .filter((c) => c.prefill_tokens > 0)
    .map((c) => (c.cost - c.decode_blocks) / (c.prefill_tokens / block_tokens));
  const [first] = weights;
  return first !== undefined && weights.every((w) => Math.abs(w - first) < 0.01)
    ? Math.round(first * 1000) / 1000
    : undefined;
}

/** Returns the candidate with the lowest cost, the first of equals; undefined where there is none. */
export function cheapest({ candidates }: Decision): Candidate | undefined {
  return candidates.reduce<Candidate | undefined>(
    (best, c) => (best === undefined || c.cost < best.cost ? c : best),
    undefined
  );
}

/** Explains why the request went to its worker. */
export function verdict(decision: Decision): string {
  const chosen = chosenOf(decision);
  const best = cheapest(decision);
  if (!chosen || !best) {
    return 'No worker was ready.';
  }
  if (decision.ours !== undefined && decision.mode === 'kv') {
    return inferredVerdict(decision, chosen);
  }
  if (decision.pinned && decision.ours === undefined) {
    return `The request specified its worker, ${chosen.name}; costs were not used.`;
  }
  if (decision.mode !== 'kv') {
    return `${modeName(decision.mode)} chose ${chosen.name}; costs were not used. The lowest cost was ${best.name}.`;
  }
  if (chosen.cost > best.cost) {
    return `${chosen.name} was picked at random although ${best.name} is cheaper: the router’s temperature is above 0.`;
  }
  const longest = Math.max(...decision.candidates.map((c) => c.overlap_blocks));
  if (chosen.overlap_blocks < longest) {
    return `${chosen.name} wins although another worker has more of the prompt cached: that one is busier.`;
  }
  return chosen.overlap_blocks === 0
    ? `No worker has any of this prompt cached: ${chosen.name} has the least work.`
    : `${chosen.name} has the longest cached prefix and the lowest cost.`;
}

/** Compares an inferred decision with the real one, which our account does not make. */
function inferredVerdict(decision: Decision, chosen: Candidate): string {
  const { candidates, ours = 0, clear } = decision;
  const own = candidates[ours];
  if (own === undefined) {
    return `The router chose ${chosen.name}; our model made no choice.`;
  }
  const sure = clear
    ? 'The margin is clear: requests in flight cannot have changed the outcome.'
    : 'The margin is small: requests in flight may have changed the outcome.';
  return own === chosen
    ? `The router chose ${chosen.name}, and our model agrees. ${sure}`
    : `The router chose ${chosen.name}; our model would have chosen ${own.name}. ${sure}`;
}

/** The turn that round-robin would have assigned to each decision, by its key. */
export type Assignments = ReadonlyMap<string, number>;

/**
 * Assigns the decisions (newest first) round-robin in their order. Earlier assignments are kept while their decisions
 * are listed, so a list that moves on changes none of them.
 */
export function assignRoundRobin(decisions: Decision[], before: Assignments): Assignments {
  const dealt = new Map<string, number>();
  let next = before.size === 0 ? 0 : Math.max(...before.values()) + 1;
  for (const decision of [...decisions].reverse()) {
    const key = keyOf(decision);
    const known = before.get(key);
    dealt.set(key, known ?? next++);
  }
  return dealt;
}

/** Returns the worker to which round-robin would have assigned a decision. */
export function assignedWorker(decision: Decision, dealt: Assignments): Candidate | undefined {
  const turn = dealt.get(keyOf(decision));
  return turn === undefined ? undefined : decision.candidates[turn % decision.candidates.length];
}

/**
 * Returns the worker that the other mode would have chosen: round-robin where the costs decided, the lowest cost where
 * they did not.
 */
export function alternativeWorker(decision: Decision, dealt: Assignments): Candidate | undefined {
  return decision.mode === 'kv' ? assignedWorker(decision, dealt) : cheapest(decision);
}

/** The tokens that a list of decisions left to be computed, and those that others would have left. */
interface Tally {
  decisions: number;
  prompt: number;
  chosen: number;
  /** Estimated for the workers that alternativeWorker returns, with the caches as they were. */
  instead: number;
}

/** Sums the tokens that the decisions left to be computed. */
export function tally(decisions: Decision[], dealt: Assignments): Tally {
  const sum: Tally = { decisions: 0, prompt: 0, chosen: 0, instead: 0 };
  for (const decision of decisions) {
    const chosen = chosenOf(decision);
    const other = alternativeWorker(decision, dealt);
    if (chosen && other) {
      sum.decisions++;
      sum.prompt += decision.prompt_tokens;
      sum.chosen += toCompute(decision, chosen);
      sum.instead += toCompute(decision, other);
    }
  }
  return sum;
}

/** Returns the decisions in the mode of the newest one. */
export function ofOneMode(decisions: Decision[]): Decision[] {
  return decisions.filter((d) => d.mode === decisions[0].mode);
}
