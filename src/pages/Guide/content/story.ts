import type { Vendor } from '../../../vendor';
import type { Paragraph } from './types';

/** The thirty seconds, without the vendor's part: a breath each. */
export const pitch = ({ router }: Vendor): Paragraph[] => [
  { when: 'running', text: '{live.concurrency} conversations are going on here, all at once.' },
  'Every follow-up question sends the whole conversation again. A plain balancer deals it to any GPU, which then computes what its neighbour still remembers.',
  `${router} knows who remembers what, and sends the question there.`,
  'Same GPUs, same model, no change to the application: {rec.tokens-gain} more tokens a second in the recorded runs.',
  {
    when: 'kv better',
    text: 'Look: the slowest first tokens come after {live.ttft.p95}, with round-robin after {here.rr.ttft.p95}.',
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
    title: 'Plain balancing wastes GPU time',
    text: 'Each turn repeats the conversation so far. Whoever deals turns out blindly has that history computed again and again.',
    numbers: 'An average request here has {live.prompt-tokens} of prompt and {live.output-tokens} of answer.',
    deep: 'The waste is smaller than the story has it: with few starters round-robin, too, finds {here.rr.hit} of prompt tokens in a cache at this concurrency.',
  },
  {
    id: 'routing',
    title: 'Routing by cache avoids the waste',
    text: 'A follow-up goes where its conversation is still in memory. Only what is new has to be computed.',
    numbers:
      'Found in a cache: {live.hit}. Median time to the first token: {live.turn-1} in the first turn, {live.turn-3} in the third.',
    deep: 'The router weighs cached blocks against load. It may send a turn away from its cache where that worker is busy.',
  },
  {
    id: 'more',
    title: 'The same GPUs serve more people',
    text: 'First words come sooner and more tokens come out each second, on hardware that is paid for already.',
    numbers:
      'Over all recorded levels {rec.tokens-gain} more tokens a second. Both targets hold, from the lowest level up, to: {rec.kv.sustained} under KV-aware routing, {rec.rr.sustained} under round-robin.',
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
    text: 'Found passages fill the prompt, and each further question about them sends them along again. It is the closest relative of this workload.',
  },
  {
    id: 'system-prompts',
    title: 'Long system prompts',
    text: 'Rules, tone and examples of a company stand in front of every request to its agent. Here the starters play that part.',
  },
  {
    id: 'assistants',
    title: 'Knowledge assistants',
    text: 'Somebody brings a document and asks on about it, turn by turn. The answers are long, and the history grows.',
  },
  {
    id: 'not',
    title: 'Where it does not help',
    text: 'Short requests that have nothing in common share no beginning. With room to spare every router does well. Say so: it earns trust.',
  },
];

/** What others say they measured, for and against. */
export const others: string[] = [
  'NVIDIA: mean TTFT from {pub.nvidia.before} to {pub.nvidia.after}.',
  'llm-d: answers up to {pub.llmd.faster} as fast. Run by others: from {pub.a10g.before} to {pub.a10g.after}.',
  'Against it: where every session shares a long system prompt, another router’s author measured hit rates of {pub.llm-router.rr} under round-robin, {pub.llm-router.least} under least loaded and {pub.llm-router.prefix} under prefix-aware routing: close together.',
];
