import type { Question, QuestionGroup } from './content';
import { plain, type Part } from './parse';

/** Small letters without accents, so that "Señor" is found by "senor". */
function fold(text: string): string {
  return text.normalize('NFKD').replace(/\p{M}/gu, '').toLowerCase();
}

/** Whether every word of a query stands somewhere in a text; an empty query finds everything. */
export function matches(query: string, text: string): boolean {
  const folded = fold(text);
  return fold(query)
    .split(/\s+/)
    .every((word) => folded.includes(word));
}

/** All that a question or a term is found by. */
function searched({ title, also, blocks }: Part): string {
  return [title, also, ...blocks.map(({ text }) => plain(text))].join('\n');
}

/** What is found, in the order of the guide; groups without a match are left out. */
export interface Found {
  groups: QuestionGroup[];
  terms: Part[];
  /** How many questions there are, and how many terms. */
  questions: number;
}

/** Searches questions and terms. */
export function search(query: string, groups: QuestionGroup[], terms: Part[]): Found {
  const found = groups
    .map((group) => ({ ...group, questions: group.questions.filter((one) => matches(query, searched(one))) }))
    .filter((group) => group.questions.length > 0);
  return {
    groups: found,
    terms: terms.filter((term) => matches(query, searched(term))),
    questions: found.reduce((sum, group) => sum + group.questions.length, 0),
  };
}

/** Puts first what a visitor is likely to ask, and leaves the order as it is otherwise. */
export function likelyFirst(questions: Question[], likely: string[]): Question[] {
  return [...questions].sort((a, b) => Number(likely.includes(b.id)) - Number(likely.includes(a.id)));
}
