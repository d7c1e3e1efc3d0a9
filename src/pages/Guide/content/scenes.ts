import type { Condition } from '../facts';
import { DETAILED } from './screens';
import type { Paragraph } from './types';

/** Something to play in front of a visitor, step by step. */
export interface Scene {
  id: 'documents' | 'speculation' | 'twin';
  title: string;
  /** What has to hold for it to be played; without it, it always can be. */
  when?: Condition;
  text: Paragraph[];
  /** What to do, in order. */
  steps: string[];
  /** What to admit. */
  fair: Paragraph[];
}

/** The scenes beside the change of mode. */
export const scenes: Scene[] = [
  {
    id: 'documents',
    title: 'Every visitor brings their own document',
    text: [
      'Opening texts in circulation: {live.openings}. While all conversations share a few, every worker soon has every text cached, and even round-robin finds most of a prompt in a cache. Give each conversation its own text, and only the worker that served the conversation has it cached.',
      { when: 'own documents', text: 'Right now each conversation has its own text.' },
      {
        when: 'shared documents',
        text: 'Right now conversations share their texts, so the first turn is fast too and there is little to gain.',
      },
    ],
    steps: [
      'Set “Opening texts” to “One each” in the workload controls, under KV-aware routing, and wait until it has settled.',
      'Show TTFT by turn: the first turn is slow, because no worker has its text cached. Now: {live.turn-1}.',
      'Later turns are fast, because the router sends them back to the same worker. Third turn now: {live.turn-3}.',
      'Change to round-robin. A second turn lands on another worker {live.elsewhere} and starts with a cold cache there.',
      'Reset “Opening texts” before you compare with the recorded runs: they used shared texts.',
    ],
    fair: [
      'Most real workloads are in between: some prompts are shared by all users, some belong to one user. This extreme shows the effect most clearly.',
    ],
  },
  {
    id: 'speculation',
    title: 'The router first, then speculation: phases 1, 2, 3a and 3b',
    text: [
      'Routing saves work before the first token. Speculative decoding saves time on every token after it. The gains add up, and the phases enable them one by one. Speculation now: {live.speculation}.',
      {
        when: 'speculating',
        text: '{live.acceptance} of the guessed tokens are accepted, so one pass of the large model produces {live.tokens-per-step} tokens.',
      },
      {
        when: 'simulated',
        text: 'The simulated cluster can switch speculation without a restart. Its timing is then assumed, not fitted to a recorded run: it shows the idea, and the screens say “not calibrated”.',
      },
    ],
    steps: [
      'Phase 1: round-robin, no speculation. Let it settle, and note TTFT and ITL.',
      'Phase 2: KV-aware, still no speculation. Watch TTFT of later turns; ITL hardly changes.',
      'Phase 3a: a draft model guesses the next tokens. Watch ITL fall, and the acceptance rate appear.',
      'Phase 3b: EAGLE-3 guesses from the large model’s own hidden states. Compare its acceptance rate, ITL and memory with 3a: the page “Dynamo features” has both side by side.',
      `In Grafana, “${DETAILED}” shows a line for each phase that was recorded or measured here.`,
    ],
    fair: [
      'The acceptance rate depends on the texts, so do not promise one. Whether the recorded runs used speculation is not recorded, so they do not represent any phase.',
    ],
  },
  {
    id: 'twin',
    title: 'Two routers, the same conversations',
    when: 'twin',
    text: [
      'Every conversation runs on two servers at the same time: the same opening, the same questions, the same concurrency. On the left {live.mode}, on the right {twin.mode}.',
    ],
    steps: [
      'Open “Side by side”, or the stage view and press T. TTFT p95 now: {live.ttft.p95} on the left, {twin.ttft.p95} on the right.',
      'Press C for a showcase. Both routers get the same question at the same time, and everybody sees which answer begins first, and by how much.',
      'Let it run to its last turn. The prompt grows with every turn, and so does the benefit of a cache.',
      'Scroll down to “Turn by turn”: the same turns of the same conversations on both sides, with the difference and its interval.',
      'Swap the modes. A difference that moves with the mode is due to the router; one that stays is due to the cluster.',
    ],
    fair: [
      'A showcase is a single conversation. It may go the other way, and it is not included in any figure.',
      'Two clusters can differ in more than their routers. Until the modes have been swapped, or both sides have run the same mode for a while, the screens say so next to every figure.',
    ],
  },
];
