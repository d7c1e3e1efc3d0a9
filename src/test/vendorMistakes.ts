import type { z } from 'zod';

import { schema, type Vendor } from '../vendor/schema';

/** What visitors ask whatever the cluster stands on: ids of questions. Addresses to them hold for every vendor. */
const QUESTIONS = ['shared-storage', 'multi-gpu', 'production-ready', 'network'] as const;

/** Says by name what is wrong with a vendor's file; nothing, where nothing is. */
export function mistakes(file: unknown): string[] {
  const { data, error } = schema.safeParse(file);
  return data ? [...references(data), ...typedFigures(data)] : error.issues.flatMap((issue) => words(issue, file));
}

function words(issue: z.core.$ZodIssue, file: unknown): string[] {
  const paths = issue.code === 'unrecognized_keys' ? issue.keys.map((key) => [...issue.path, key]) : [issue.path];
  return paths.map((path) => `${nameOf(path, file)}: ${issue.message}`);
}

/** A path as one reads it; a part of a list stands under its id where it has one, since that is found sooner. */
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

/** The id of a part of a list. */
function name(value: unknown): string | undefined {
  return isRecord(value) && typeof value.id === 'string' ? value.id : undefined;
}

/** What is named must be there, and what is there must be named. */
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

/** A figure that is typed into a text has no source: it must be a claim. */
function typedFigures({ names, claims, sources, links, ...rest }: Vendor): string[] {
  return texts(rest, '')
    .filter(([path]) => !/(^|\.)(id|words|sources|links|asks)(\[|$)/.test(path))
    .filter(([, said]) => /\d/.test(withoutNames(said, names)))
    .map(([path]) => `${path}: has a figure without a source; make it a claim, or add the name to names`);
}

/** A text without figures that are quoted, and without names. */
export function withoutNames(said: string, names: string[]): string {
  return names.reduce((left, one) => left.replaceAll(one, ''), said.replace(/\{[^}]*\}/g, ''));
}

/** Every text in it with its path. */
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
