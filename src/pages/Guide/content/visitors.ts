import type { Vendor, VisitorKind } from '../../../vendor';

/** How far to go: the headline, the numbers, or the mechanism with its limits. */
type Depth = 1 | 2 | 3;

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
  /** When the platform is presented: first, after the pitch, or only on request. */
  story: 'first' | 'after' | 'asked';
  /** What such a visitor is likely to ask: ids of questions. */
  asks: string[];
}

/** What does not depend on the vendor: how far to go, and when to present the platform. */
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

/** The four kinds of visitor, as the vendor's file describes them. */
export const visitors = (from: Vendor): Visitor[] =>
  kinds.map((kind) => ({ ...kind, depthText: depthTexts[kind.depth], ...from.visitors[kind.id] }));
