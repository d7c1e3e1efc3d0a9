import type { Question, QuestionGroup } from './content';
import { withoutFigures, type Part } from './parse';

/** Converts to lower case without accents, so that "Señor" matches "senor". */
function fold(text: string): string {
  return text.normalize('NFKD').replace(/\p{M}/gu, '').toLowerCase();
}

/** Whether a text contains every word of a query. An empty query matches everything. */
export function matches(query: string, text: string): boolean {
  const folded = fold(text);
  return fold(query)
    .split(/\s+/)
    .every((word) => folded.includes(word));
}

/** Returns all text by which a question or a term is found. */
function searched({ title, also, blocks }: Part): string {
  return [title, also, ...blocks.map(({ text }) => withoutFigures(text))].join('\n');
}

/** The results, in the order of the guide. Groups without a match are omitted. */
export interface Found {
  groups: QuestionGroup[];
  terms: Part[];
  /** The number of questions, and of terms. */
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

/** Moves a visitor's likely questions to the front, and keeps the order otherwise. */
export function likelyFirst(questions: Question[], likely: string[]): Question[] {
  return [...questions].sort((a, b) => Number(likely.includes(b.id)) - Number(likely.includes(a.id)));
}
