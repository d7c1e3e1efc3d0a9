import { lexer, type MarkedToken } from 'marked';

import { figures, type FigureKey } from '../../client';
import { CONDITIONS, type Condition } from './facts';
import type { Reference } from './figures';

/** A paragraph, or a numbered list with its items. Figures are quoted by name in braces: {live.ttft.p95}. */
export interface Block {
  text: string;
  items?: string[];
  /** The condition under which it is shown. */
  when?: Condition;
}

/** A heading with its content. */
export interface Part {
  /** Its address, where it has one. */
  id: string;
  title: string;
  also?: string;
  /** Labels of the sources for further reading. */
  readOn?: string[];
  /** The condition under which it is shown. */
  needs?: Condition;
  blocks: Block[];
  parts: Part[];
}

/**
 * Splits a Markdown file by its headings and returns the parts of the first level. "## Title {#id}" has an address. The
 * comment "when" applies to the next block, any other comment to the part.
 */
export function parse(markdown: string): Part[] {
  const path = [part('', '', [])];
  let when: Condition | undefined;
  const text = markdown.replace(/\{help\.(\w+)\}/g, (_, key: FigureKey) => figures[key].help);
  for (const token of lexer(text) as MarkedToken[]) {
    const above = path[path.length - 1];
    if (token.type === 'heading') {
      const [, title, id = ''] = /^(.*?)(?: \{#([\w-]+)\})?$/.exec(token.text) ?? [];
      const found = part(id, title, []);
      path.length = token.depth;
      path[token.depth - 1].parts.push(found);
      path.push(found);
    } else if (token.type === 'html') {
      const [, name, value] = /^<!-- ([a-z ]+): (.*) -->/.exec(token.text) ?? ['', '', ''];
      when = name === 'when' ? condition(value) : undefined;
      Object.assign(above, when ? {} : note(name, value));
    } else if (token.type === 'paragraph') {
      above.blocks.push({ text: token.text, when });
      when = undefined;
    } else if (token.type === 'list') {
      const items = token.items.map((item) => item.text);
      above.blocks.push({ text: items.join('\n'), items, when });
      when = undefined;
    } else if (token.type !== 'space' && token.type !== 'def') {
      throw new Error(`There is no way to show a ${token.type}.`);
    }
  }
  return path[0].parts;
}

/** Parses a comment of a part. */
function note(name: string, value: string): Pick<Part, 'also' | 'readOn' | 'needs'> {
  switch (name) {
    case 'also':
      return { also: value };
    case 'read on':
      return { readOn: value.split(', ') };
    case 'needs':
      return { needs: condition(value) };
    default:
      throw new Error(`There is no note “${name}”.`);
  }
}

function condition(name: string): Condition {
  const found = CONDITIONS.find((one) => one === name);
  if (!found) {
    throw new Error(`There is no condition “${name}”.`);
  }
  return found;
}

/** Returns a part of some paragraphs, in the form of a parsed file. */
export function part(id: string, title: string, texts: string[]): Part {
  return { id, title, blocks: texts.map((text) => ({ text })), parts: [] };
}

/** Returns the sources that a file defines, by their labels: [label]: https://… "Title". */
export function definitions(markdown: string): Record<string, Reference> {
  const links = Object.entries(lexer(markdown).links);
  return Object.fromEntries(links.map(([label, { href, title }]) => [label, { title: title ?? href, url: href }]));
}

/** Splits a text into words and figures in braces. */
export function pieces(text: string): string[] {
  return text.split(/(\{[^}]*\})/).filter((piece) => piece !== '');
}

/** Returns the name of the figure that a piece quotes; undefined where it is text. */
export function figureName(piece: string): string | undefined {
  return piece.startsWith('{') ? piece.slice(1, -1) : undefined;
}

/** Returns the names of the figures that a text quotes. */
export function quoted(text: string): string[] {
  return pieces(text).flatMap((piece) => figureName(piece) ?? []);
}

/** Returns a text without its figures, for search and for counting. */
export function withoutFigures(text: string): string {
  return text.replace(/\{[^}]*\}/g, ' ');
}
