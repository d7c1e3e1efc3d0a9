import type { Condition } from '../facts';

/** A paragraph; some stand only while something holds. Figures are quoted by name in braces: {live.ttft.p95}. */
export type Paragraph = string | { when: Condition; text: string };

/** Where to read on, or where something was published. */
export interface Reference {
  title: string;
  url: string;
}

/** A question with its answer. */
export interface Question {
  id: string;
  question: string;
  /** What else it is looked for by. */
  words: string[];
  answer: Paragraph[];
  sources: Reference[];
  links: Reference[];
}

/** Questions that belong together. */
export interface QuestionGroup {
  id: 'demo' | 'platform' | 'technical';
  title: string;
  questions: Question[];
}
