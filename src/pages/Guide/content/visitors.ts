import { vendor, type VisitorKind } from '../../../vendor';

/** How far to go: the headline, the numbers, or the mechanism with its limits. */
export type Depth = 1 | 2 | 3;

/** A kind of visitor, and what that means for what is said. */
export interface Visitor {
  id: VisitorKind;
  title: string;
  who: string;
  depth: Depth;
  /** What the depth means, in words. */
  depthText: string;
  /** What to say first. */
  first: string[];
  /** What to leave out. */
  leave: string[];
  /** How the platform's story is told: first, after the pitch, or only on request. */
  story: 'first' | 'after' | 'asked';
  /** What such a visitor is likely to ask: ids of questions. */
  asks: string[];
}

/** The four kinds of visitor. */
export const visitors: Visitor[] = [
  {
    id: 'returning',
    title: `Knew ${vendor.name} long ago`,
    who: 'Had a small server there once, and has not looked since. That there are GPUs is news.',
    depth: 1,
    depthText: 'Headline and one number',
    first: [vendor.visitors.returning, 'Then show one thing: the live column beside the recorded one.'],
    leave: ['prefix tree and cost formula', 'percentiles, beyond “the slowest ones”'],
    story: 'first',
    asks: ['gpus-since', 'gpus-price', 'production-ready', 'model', 'training'],
  },
  {
    id: 'newcomer',
    title: `New to ${vendor.name}`,
    who: 'Lives with one of the large clouds, and wonders why to listen.',
    depth: 1,
    depthText: 'Headline and one number',
    first: [
      'The same GPUs can serve more people, whoever owns them. That is of use to you wherever you are.',
      vendor.visitors.newcomer,
    ],
    leave: ['product names that nobody asked for', 'the parts of Dynamo'],
    story: 'after',
    asks: ['why-this-platform', 'kubernetes-compared', 'production-ready', 'serverless', 'gpus-price'],
  },
  {
    id: 'evaluator',
    title: 'Compares GPU clouds',
    who: 'Is about to decide, and wants figures with their conditions.',
    depth: 2,
    depthText: 'Numbers and how they were made',
    first: [
      vendor.visitors.evaluator,
      'Start with the targets and with how the figures were recorded, then move the slider.',
    ],
    leave: ['the story of the company', 'adjectives'],
    story: 'after',
    asks: [
      'gpus-price',
      'gpu-regions',
      'multi-gpu',
      'shared-storage',
      'kubernetes-compared',
      'benchmarks',
      'slos',
      'rps-low',
    ],
  },
  {
    id: 'technical',
    title: 'Came for Dynamo',
    who: 'Wants to know how the router works, and where it fails.',
    depth: 3,
    depthText: 'Mechanism, limits, counter-evidence',
    first: ['Open KV routing and follow one decision. Then raise the load until it hurts.', vendor.visitors.technical],
    leave: ['the platform, until it is asked for', 'what TTFT means'],
    story: 'asked',
    asks: ['router', 'crossover', 'disaggregated', 'grove', 'network', 'benchmarks', 'model'],
  },
];

/** The kind of visitor that an address names. */
export function visitorOf(id: string | null): Visitor | undefined {
  return visitors.find((visitor) => visitor.id === id);
}
