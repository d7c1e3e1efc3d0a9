import { withoutFigures, type Part } from './parse';

/** Converts to lower case without accents, so that "Señor" matches "senor". */
function fold(text: string): string {
  return text.normalize('NFKD').replace(/\p{M}/gu, '').toLowerCase();
}

/** Whether a text contains every word of a query. An empty query matches everything. */
function matches(query: string, text: string): boolean {
  const folded = fold(text);
  return fold(query)
    .split(/\s+/)
    .every((word) => folded.includes(word));
}

/** Returns the chapters with the entries that match a query. Those without a match are omitted. */
export function search(query: string, chapters: Part[]): Part[] {
  return chapters.flatMap((chapter) =>
    chapter.parts.length > 0 ? withMatches(chapter, query) : found([chapter], query)
  );
}

/** Returns the parts whose own text matches, in full, and others with those of their parts that match. */
function found(parts: Part[], query: string): Part[] {
  return parts.flatMap((part) => (matches(query, ownText(part)) ? [part] : withMatches(part, query)));
}

function withMatches(part: Part, query: string): Part[] {
  const parts = found(part.parts, query);
  return parts.length > 0 ? [{ ...part, parts }] : [];
}

function ownText({ title, also, blocks }: Part): string {
  return [title, also, ...blocks.map(({ text }) => withoutFigures(text))].join('\n');
}

/** Returns the number of entries of some chapters. A chapter without entries is one. */
export function countEntries(chapters: Part[]): number {
  return chapters.reduce((sum, { parts }) => sum + Math.max(1, parts.length), 0);
}
