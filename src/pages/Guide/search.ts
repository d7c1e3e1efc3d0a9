import type { Term } from './content/glossary';
import type { Question, QuestionGroup } from './content/types';
import { plain } from './text';

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

/** All that a question is found by. */
export function questionText({ question, words, answer }: Question): string {
  return [question, ...words, ...answer.map(plain)].join('\n');
}

/** What is found, in the order of the guide; groups without a match are left out. */
export interface Found {
  groups: QuestionGroup[];
  terms: Term[];
  /** How many questions there are, and how many terms. */
  questions: number;
}

/** Searches questions and terms. */
export function search(query: string, groups: QuestionGroup[], terms: Term[]): Found {
  const found = groups
    .map((group) => ({ ...group, questions: group.questions.filter((one) => matches(query, questionText(one))) }))
    .filter((group) => group.questions.length > 0);
  return {
    groups: found,
    terms: terms.filter(({ term, also = '', text }) => matches(query, `${term}\n${also}\n${plain(text)}`)),
    questions: found.reduce((sum, group) => sum + group.questions.length, 0),
  };
}

/** Puts first what a visitor is likely to ask, and leaves the order as it is otherwise. */
export function likelyFirst(questions: Question[], likely: string[]): Question[] {
  return [...questions].sort((a, b) => Number(likely.includes(b.id)) - Number(likely.includes(a.id)));
}
