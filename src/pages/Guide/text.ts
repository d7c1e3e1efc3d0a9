import type { Condition } from './facts';
import type { Paragraph } from './content/types';

/** A piece of a text: words, or the name of a figure. */
export type Piece = { words: string } | { figure: string };

/** Takes a text apart: "p95 {live.ttft.p95} now" is words, a figure, words. */
export function pieces(text: string): Piece[] {
  return text
    .split(/(\{[^}]*\})/)
    .filter((piece) => piece !== '')
    .map((piece) => (piece.startsWith('{') ? { figure: piece.slice(1, -1) } : { words: piece }));
}

/** The names of the figures that a text quotes. */
export function quoted(text: string): string[] {
  return pieces(text).flatMap((piece) => ('figure' in piece ? [piece.figure] : []));
}

/** The text of a paragraph; nothing where what it depends on does not hold. */
export function textOf(paragraph: Paragraph, holds: ReadonlySet<Condition>): string | undefined {
  if (typeof paragraph === 'string') {
    return paragraph;
  }
  return holds.has(paragraph.when) ? paragraph.text : undefined;
}

/** A text without its figures, as it is searched and counted. */
export function plain(paragraph: Paragraph): string {
  return (typeof paragraph === 'string' ? paragraph : paragraph.text).replace(/\{[^}]*\}/g, ' ');
}
