import { lexer, type MarkedToken } from 'marked';

import { figures, type FigureKey } from '../../client';
import { CONDITIONS, type Condition } from './facts';

/** A paragraph, a list or, in a block quote, a note. Figures are quoted by name in braces: {live.ttft.p95}. */
export interface Block {
  /** In Markdown; the items of a list are below each other. */
  text: string;
  kind: 'paragraph' | 'note' | 'ol' | 'ul';
  /** The condition under which it is shown. */
  when?: Condition;
}

/** A heading with its content. */
export interface Part {
  /** Its address. */
  id: string;
  title: string;
  /** Further words by which it is found. */
  also?: string;
  /** How the parts of a chapter are shown; below each other unless it is set. */
  layout?: string;
  /** The condition under which it is shown. */
  needs?: Condition;
  blocks: Block[];
  parts: Part[];
}

/**
 * Splits a Markdown text by its headings and returns the parts of the first level. "## Title {#id}" sets an address.
 * The comment "when" applies to the next block, any other comment to the part.
 */
export function parse(markdown: string): Part[] {
  const path: Part[] = [{ id: '', title: '', blocks: [], parts: [] }];
  let when: Condition | undefined;
  const text = markdown.replace(/\{help\.(\w+)\}/g, (_, key: FigureKey) => figures[key].help);
  for (const token of lexer(text) as MarkedToken[]) {
    const above = path[path.length - 1];
    if (token.type === 'heading') {
      const [, title, id = slug(title)] = /^(.*?)(?: \{#([\w-]+)\})?$/.exec(token.text) ?? [];
      const found = { id, title, blocks: [], parts: [] };
      path.length = token.depth;
      path[token.depth - 1].parts.push(found);
      path.push(found);
    } else if (token.type === 'html') {
      const [, name, value] = /^<!-- ([a-z ]+): (.*) -->/.exec(token.text) ?? ['', '', ''];
      when = name === 'when' ? condition(value) : undefined;
      Object.assign(above, when ? {} : remark(name, value));
    } else if (token.type !== 'space') {
      above.blocks.push({ ...block(token), when });
      when = undefined;
    }
  }
  return path[0].parts;
}

function block(token: MarkedToken): Block {
  switch (token.type) {
    case 'paragraph':
      return { text: token.text, kind: 'paragraph' };
    case 'blockquote':
      return { text: token.text, kind: 'note' };
    case 'list':
      return { text: token.items.map((item) => item.text).join('\n'), kind: token.ordered ? 'ol' : 'ul' };
    default:
      throw new Error(`There is no way to show a ${token.type}.`);
  }
}

/** Returns a title as an address. */
function slug(title: string): string {
  return title.toLowerCase().replace(/[^a-z0-9]+/g, '-');
}

/** Parses a comment of a part. */
function remark(name: string, value: string): Pick<Part, 'also' | 'layout' | 'needs'> {
  switch (name) {
    case 'also':
    case 'layout':
      return { [name]: value };
    case 'needs':
      return { needs: condition(value) };
    default:
      throw new Error(`There is no remark “${name}”.`);
  }
}

function condition(name: string): Condition {
  const found = CONDITIONS.find((one) => one === name);
  if (!found) {
    throw new Error(`There is no condition “${name}”.`);
  }
  return found;
}

/** Matches a figure in braces. Splitting a text by it yields the figures' names at odd indices. */
export const FIGURE = /\{([^}]*)\}/g;

/** Returns the names of the figures that a text quotes. */
export function quoted(text: string): string[] {
  return Array.from(text.matchAll(FIGURE), ([, name]) => name);
}

/** Returns a text without its figures, for search and for counting. */
export function withoutFigures(text: string): string {
  return text.replace(FIGURE, ' ');
}
