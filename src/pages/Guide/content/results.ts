import type { Paragraph } from './types';

/** One thing that the recorded runs say, in plain English. */
export interface Result {
  id: string;
  title: string;
  text: Paragraph[];
}

/** What came of the recorded runs; every number is worked out from their table. */
export const results: Result[] = [
  {
    id: 'tokens',
    title: 'More from the same GPUs',
    text: [
      'KV-aware routing produced {rec.tokens-gain} more tokens a second than round-robin at the same load, {rec.tokens-mean} more on average over {rec.levels-count} levels, {rec.levels} conversations. The peak over these levels was {rec.kv.peak}, against {rec.rr.peak}.',
    ],
  },
  {
    id: 'pace',
    title: 'Answers that flow faster',
    text: [
      'Once an answer has begun, each token took {rec.tpot-gain} less time (median TPOT), {rec.tpot-mean} less on average over {rec.levels-count} levels. A minus sign means more time. GPUs that recompute less of each prompt have more time for answers.',
    ],
  },
  {
    id: 'end',
    title: 'Answers that finish sooner',
    text: [
      'From sending a question to the last token, the slowest answers (p95) took {rec.latency-gain} less time, {rec.latency-mean} less on average over {rec.levels-count} levels; the median answer {rec.latency-median-gain} less.',
    ],
  },
  {
    id: 'memory',
    title: 'More of each prompt cached',
    text: [
      'On average over {rec.levels-count} levels, {rec.kv.hit-mean} of prompt tokens came from a cache; under round-robin {rec.rr.hit-mean}. The gap is small because all conversations shared a few texts. It grows when every visitor brings their own document.',
    ],
  },
  {
    id: 'first',
    title: 'First tokens: sooner, until the cluster is full',
    text: [
      'At best the slowest first tokens (TTFT p95) came {rec.ttft-gain} sooner. At these levels they came later: {rec.worse-levels}. The median improved by {rec.ttft-median-gain}, {rec.ttft-median-mean} on average over {rec.levels-count} levels; a minus sign means later.',
    ],
  },
  {
    id: 'promise',
    title: 'More users within the SLOs',
    text: [
      'Both SLOs were met at every level up to {rec.kv.sustained} conversations under KV-aware routing, and up to {rec.rr.sustained} under round-robin.',
    ],
  },
];
