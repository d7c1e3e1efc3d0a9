import type { Vendor } from '../../../vendor';
import type { Paragraph } from './types';

/** The thirty seconds, without the vendor's part: a breath each. */
export const pitch = ({ router }: Vendor): Paragraph[] => [
  {
    when: 'running',
    text: '{live.concurrency} conversations are running here, all at once: {live.model} on {live.workers} workers, GPU {live.gpu}.',
  },
  'Every follow-up question sends the whole conversation again. A plain load balancer sends it to any GPU, which then recomputes what its neighbour still has in memory.',
  `${router} knows which GPU has what in memory, and sends the question there.`,
  'Same GPUs, same model, no change to the application: {rec.tokens-gain} more tokens a second in the recorded runs.',
  {
    when: 'kv better',
    text: 'Look: the slowest first tokens take {live.ttft.p95}; with round-robin {here.rr.ttft.p95}.',
  },
  {
    when: 'kv worse',
    text: 'Look closely: at this load the slowest first tokens are slower, {live.ttft.p95} against {here.rr.ttft.p95}. Ask me why.',
  },
];

/** Something to take home, said at three depths. */
export interface Takeaway {
  id: string;
  title: string;
  /** For everybody. */
  text: string;
  /** With numbers. */
  numbers?: string;
  /** With limits and mechanism. */
  deep?: string;
}

/** The four takeaways; the last one is the vendor's. */
export const takeaways = ({ takeaway }: Vendor): Takeaway[] => [
  {
    id: 'waste',
    title: 'Plain load balancing wastes GPU time',
    text: 'Each turn repeats the conversation so far. A load balancer that ignores caches has that history computed again and again.',
    numbers: 'An average request here has {live.prompt-tokens} of prompt and {live.output-tokens} of answer.',
    deep: 'The waste is smaller than often claimed: with few starters, round-robin also finds {here.rr.hit} of prompt tokens in a cache at this concurrency.',
  },
  {
    id: 'routing',
    title: 'KV-aware routing avoids the waste',
    text: 'A follow-up goes where its conversation is still in memory. Only what is new has to be computed.',
    numbers:
      'Found in a cache: {live.hit}. Median time to the first token: {live.turn-1} in the first turn, {live.turn-3} in the third.',
    deep: 'The router weighs cached blocks against load. It may send a turn away from its cache if that worker is busy.',
  },
  {
    id: 'more',
    title: 'The same GPUs serve more people',
    text: 'Answers start sooner and more tokens come out each second, on hardware that is already paid for.',
    numbers:
      'Over all {rec.levels-count} recorded levels, {rec.levels} conversations, {rec.tokens-gain} more tokens a second. Both SLOs are met at every level up to {rec.kv.sustained} under KV-aware routing and {rec.rr.sustained} under round-robin.',
    deep: 'Not everywhere: TTFT p95 was higher at {rec.worse-levels} conversations.',
  },
  { id: 'platform', ...takeaway },
];

/** A workload of the real world that looks like this one, or does not. */
export interface Parallel {
  id: string;
  title: string;
  text: string;
}

/** Where visitors know it from, and where it does not help. */
export const parallels: Parallel[] = [
  {
    id: 'rag',
    title: 'Retrieval (RAG)',
    text: 'Retrieved passages fill the prompt, and every follow-up question sends them again. It is the closest match to this workload.',
  },
  {
    id: 'system-prompts',
    title: 'Long system prompts',
    text: 'A company’s rules, tone and examples precede every request to its agent. Here the starters play that role.',
  },
  {
    id: 'assistants',
    title: 'Knowledge assistants',
    text: 'A user brings a document and asks about it turn by turn. The answers are long, and the history grows.',
  },
  {
    id: 'not',
    title: 'Where it does not help',
    text: 'Short, unrelated requests share no prefix. With capacity to spare every router does well. Say so: it earns trust.',
  },
];

/** What others say they measured, for and against. */
export const others: string[] = [
  'NVIDIA: mean TTFT from {pub.nvidia.before} to {pub.nvidia.after}.',
  'llm-d: responses up to {pub.llmd.faster} as fast. Measured by a third party: from {pub.a10g.before} to {pub.a10g.after}.',
  'Counter-evidence: where every session shares a long system prompt, another router’s author measured hit rates of {pub.llm-router.rr} under round-robin, {pub.llm-router.least} under least loaded and {pub.llm-router.prefix} under prefix-aware routing: close together.',
];
