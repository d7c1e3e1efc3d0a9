import type { Vendor, VisitorKind } from '../../../vendor';

/** How far to go: the headline, the numbers, or the mechanism with its limits. */
type Depth = 1 | 2 | 3;

/** A kind of visitor, and its effect on the texts. */
export interface Visitor {
  id: VisitorKind;
  title: string;
  who: string;
  depth: Depth;
  depthText: string;
  first: string[];
  leave: string[];
  /** When the platform is presented: first, after the pitch, or only on request. */
  story: 'first' | 'after' | 'asked';
  asks: string[];
}

/** The parts of each kind that do not depend on the vendor: the depth, and when to present the platform. */
const kinds: Array<Pick<Visitor, 'id' | 'depth' | 'story'>> = [
  { id: 'returning', depth: 1, story: 'first' },
  { id: 'newcomer', depth: 1, story: 'after' },
  { id: 'evaluator', depth: 2, story: 'after' },
  { id: 'technical', depth: 3, story: 'asked' },
];

const depthTexts: Record<Depth, string> = {
  1: 'Headline and one number',
  2: 'Numbers and how they were made',
  3: 'Mechanism, limits, counter-evidence',
};

/** Returns the four kinds of visitor, as the vendor's file describes them. */
export const visitors = (from: Vendor): Visitor[] =>
  kinds.map((kind) => ({ ...kind, depthText: depthTexts[kind.depth], ...from.visitors[kind.id] }));
