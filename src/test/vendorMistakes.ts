import type { z } from 'zod';

import { schema, type Vendor } from '../vendor/schema';

/** The ids of questions that hold for every vendor. Links to them stay valid with each. */
const QUESTIONS = ['shared-storage', 'multi-gpu', 'production-ready', 'network'] as const;

/** Returns each mistake of a vendor's file, in words. */
export function mistakes(file: unknown): string[] {
  const { data, error } = schema.safeParse(file);
  return data ? [...references(data), ...typedFigures(data)] : error.issues.flatMap((issue) => words(issue, file));
}

function words(issue: z.core.$ZodIssue, file: unknown): string[] {
  const paths = issue.code === 'unrecognized_keys' ? issue.keys.map((key) => [...issue.path, key]) : [issue.path];
  return paths.map((path) => `${nameOf(path, file)}: ${issue.message}`);
}

/** Returns a readable path. An item of a list appears under its id where it has one, which is easier to find. */
function nameOf(path: PropertyKey[], file: unknown): string {
  let at = file;
  return path.reduce<string>((before, key) => {
    at = (at as Record<PropertyKey, unknown>)?.[key];
    if (typeof key === 'number') {
      return `${before}[${name(at) ?? key}]`;
    }
    return before ? `${before}.${String(key)}` : String(key);
  }, '');
}

/** Returns the id of an item of a list. */
function name(value: unknown): string | undefined {
  return isRecord(value) && typeof value.id === 'string' ? value.id : undefined;
}

/** Requires that every name refers to an item, and that every item is named. */
function references({ questions, technical, claims, sources, links, ...rest }: Vendor): string[] {
  const known = (list: Array<{ id: string }>) => new Set(list.map((one) => one.id));
  const missing = (of: Set<string>, what: string, path: string, wanted: readonly string[]) =>
    wanted.filter((one) => !of.has(one)).map((one) => `${path}: there is no ${what} “${one}”`);
  const quoted = quotedClaims(JSON.stringify({ questions, technical, ...rest }));
  const asked = [...questions, ...technical];
  return [
    ...asked.flatMap((q) => missing(known(sources), 'source', `questions[${q.id}].sources`, q.sources)),
    ...asked.flatMap((q) => missing(known(links), 'link', `questions[${q.id}].links`, q.links)),
    ...claims.flatMap((c) => missing(known(sources), 'source', `claims[${c.id}].source`, c.source ? [c.source] : [])),
    ...missing(known(claims), 'claim', 'texts', quoted),
    ...claims.filter((c) => !quoted.includes(c.id)).map((c) => `claims[${c.id}]: no text quotes it`),
    ...missing(known(asked), 'answer to', 'questions', QUESTIONS),
  ];
}

/** Requires a claim for each figure: a figure typed into a text has no source. */
function typedFigures({ names, claims, sources, links, ...rest }: Vendor): string[] {
  return texts(rest, '')
    .filter(([path]) => !/(^|\.)(id|words|sources|links)(\[|$)/.test(path))
    .filter(([, said]) => /\d/.test(withoutNames(said, names)))
    .map(([path]) => `${path}: has a figure without a source; make it a claim, or add the name to names`);
}

/** Returns a text without quoted figures and names. */
export function withoutNames(said: string, names: string[]): string {
  return names.reduce((left, one) => left.replaceAll(one, ''), said.replace(/\{[^}]*\}/g, ''));
}

/** Returns every text of a file with its path. */
function texts(value: unknown, path: string): Array<[string, string]> {
  if (typeof value === 'string') {
    return [[path, value]];
  }
  if (Array.isArray(value)) {
    return value.flatMap((one, i) => texts(one, `${path}[${name(one) ?? i}]`));
  }
  return isRecord(value)
    ? Object.entries(value).flatMap(([key, one]) => texts(one, path ? `${path}.${key}` : key))
    : [];
}

function quotedClaims(texts: string): string[] {
  return Array.from(new Set(Array.from(texts.matchAll(/\{claim\.([^}]+)\}/g), ([, claim]) => claim)));
}

function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
