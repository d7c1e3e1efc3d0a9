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
    title: 'Every visitor brings a document of their own',
    text: [
      'Opening texts in circulation: {live.openings}. While all conversations share a few, every worker soon holds every text, and even round-robin finds most of a prompt in its cache. Give each conversation a text of its own, and only the worker that has seen the conversation remembers it.',
      { when: 'own documents', text: 'Each conversation has a text of its own right now.' },
      {
        when: 'shared documents',
        text: 'Right now conversations share their texts, so the first turn is fast too, and little is left to gain.',
      },
    ],
    steps: [
      'Set “Opening texts” to “One each” in the workload controls, under KV-aware routing, and wait until it has settled.',
      'Show TTFT by turn: the first turn is slow, because its text is new to everybody. Now: {live.turn-1}.',
      'The turns after it are fast, because the router sends them back. Third turn now: {live.turn-3}.',
      'Change to round-robin. A second turn lands on another worker {live.elsewhere}, and starts from nothing there.',
      'Set “Opening texts” back when you compare with the recorded runs: they shared their texts.',
    ],
    fair: [
      'Most real work lies between the two: some prompts are shared by all, some belong to one person. This end of the scale shows the mechanism at its clearest.',
    ],
  },
  {
    id: 'speculation',
    title: 'The router first, then speculation: phases 1, 2, 3a and 3b',
    text: [
      'Routing saves work before the first token. Speculative decoding saves time on every token after it. They add up, and the phases switch them on one by one. Speculation now: {live.speculation}.',
      {
        when: 'speculating',
        text: 'Of the guessed tokens {live.acceptance} are accepted, so one pass of the large model yields {live.tokens-per-step} tokens.',
      },
      {
        when: 'simulated',
        text: 'The simulated cluster can switch speculation by itself. Its timing is then assumed and fitted to no recorded run: it shows the idea, and the screens say “not calibrated”.',
      },
    ],
    steps: [
      'Phase 1: round-robin, speculation off. Let it settle, and remember TTFT and ITL.',
      'Phase 2: KV-aware, speculation still off. Watch TTFT of later turns; ITL hardly moves.',
      'Phase 3a: a draft model guesses the next tokens. Watch ITL fall, and the acceptance rate appear.',
      'Phase 3b: EAGLE-3 guesses from the large model’s own state. Compare its acceptance rate and ITL with 3a.',
      `In Grafana, “${DETAILED}” keeps a line for each phase that was recorded or measured here, so that nobody has to remember.`,
    ],
    fair: [
      'How many guesses are accepted depends on the texts: no rate is promised here. Whether the recorded runs speculated is not recorded, so they stand for none of the phases.',
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
      'Press C for a showcase. Both routers get the same question at the same moment, and everybody sees which answer begins first, and by how much.',
      'Let it run to its last turn. The prompt grows with every turn, and so does what a cache can save.',
      'Scroll down to “Turn by turn”: the same turns of the same conversations on both sides, with the difference and its interval.',
      'Swap the modes. A difference that changes sides belongs to the router; one that stays belongs to the cluster.',
    ],
    fair: [
      'A showcase is a single conversation. It may go the other way, and it counts in no figure.',
      'Two clusters can differ in more than their routers. Until the modes were swapped, or both sides ran the same one for a while, the screens say so beside every figure.',
    ],
  },
];
