import { VENDOR_QUESTIONS } from './questions';
import type { Vendor } from './types';

/** Says what is wrong with the value at a path; nothing, where nothing is. */
type Check = (value: unknown, path: string) => string[];

const text: Check = (value, path) =>
  typeof value === 'string' && value.trim() !== '' ? [] : [`${path}: must be a text that is not empty`];

const id: Check = (value, path) =>
  typeof value === 'string' && /^[a-z][a-z0-9-]*$/.test(value)
    ? []
    : [`${path}: must be an id of small letters, digits and hyphens`];

const url: Check = (value, path) =>
  typeof value === 'string' && /^https:\/\/[^\s]+$/.test(value) ? [] : [`${path}: must be an https address`];

const optional =
  (check: Check): Check =>
  (value, path) =>
    value === undefined ? [] : check(value, path);

const some =
  (check: Check): Check =>
  (value, path) =>
    Array.isArray(value) && value.length > 0
      ? each(value, check, path)
      : [`${path}: must be a list with something in it`];

const any =
  (check: Check): Check =>
  (value, path) =>
    Array.isArray(value) ? each(value, check, path) : [`${path}: must be a list`];

function each(values: unknown[], check: Check, path: string): string[] {
  const ids = values.map((value) => (isRecord(value) ? value.id : undefined));
  const twice = ids.filter((known, i) => known !== undefined && ids.indexOf(known) !== i);
  return [
    ...values.flatMap((value, i) => check(value, `${path}[${name(value) ?? i}]`)),
    ...twice.map((known) => `${path}: “${String(known)}” is there twice`),
  ];
}

/** A mistake is found sooner by an id than by a number. */
function name(value: unknown): string | undefined {
  return isRecord(value) && typeof value.id === 'string' ? value.id : undefined;
}

/** The fields are those of the type: one that is missing here does not compile. */
function object<T>(fields: { [K in keyof T]-?: Check }): Check {
  const checks = new Map<string, Check>(Object.entries<Check>(fields));
  return (value, path) => {
    if (!isRecord(value)) {
      return [`${path}: must be an object`];
    }
    const at = (key: string) => (path ? `${path}.${key}` : key);
    const strange = Object.keys(value).filter((key) => !checks.has(key));
    return [
      ...Array.from(checks).flatMap(([key, check]) => check(value[key], at(key))),
      ...strange.map((key) => `${at(key)}: there is no such field`),
    ];
  };
}

type Part<K extends keyof Vendor> = Vendor[K] extends Array<infer T> ? T : never;
type Group = Vendor['platform']['groups'][number];

const shape = object<Vendor>({
  name: text,
  names: any(text),
  pitch: text,
  takeaway: text,
  message: text,
  visitors: object<Vendor['visitors']>({ returning: text, newcomer: text, evaluator: text, technical: text }),
  story: some(object<Part<'story'>>({ id, title: text, text })),
  platform: object<Vendor['platform']>({
    name: text,
    text,
    groups: some(
      object<Group>({ id, title: text, text, items: some(object<Group['items'][number]>({ id, title: text, text })) })
    ),
  }),
  questions: some(
    object<Part<'questions'>>({
      id,
      question: text,
      words: any(text),
      answer: some(text),
      sources: some(id),
      links: any(id),
    })
  ),
  terms: any(object<Part<'terms'>>({ id, term: text, text })),
  claims: any(object<Part<'claims'>>({ id, value: text, source: id })),
  sources: some(object<Part<'sources'>>({ id, title: text, url: optional(url) })),
  links: any(object<Part<'links'>>({ id, title: text, url })),
});

/** Says by name what is wrong with a vendor's file; nothing, where nothing is. */
export function mistakes(file: unknown): string[] {
  const wrong = shape(file, '');
  return wrong.length > 0 ? wrong : [...references(file as Vendor), ...typedFigures(file as Vendor)];
}

/** What is named must be there, and what is there must be named. */
function references({ questions, claims, sources, links, ...rest }: Vendor): string[] {
  const known = (list: Array<{ id: string }>) => new Set(list.map((one) => one.id));
  const missing = (of: Set<string>, what: string, path: string, wanted: string[]) =>
    wanted.filter((one) => !of.has(one)).map((one) => `${path}: there is no ${what} “${one}”`);
  const quoted = quotedClaims(JSON.stringify({ questions, ...rest }));
  const expected: readonly string[] = VENDOR_QUESTIONS;
  return [
    ...questions.flatMap((q) => missing(known(sources), 'source', `questions[${q.id}].sources`, q.sources)),
    ...questions.flatMap((q) => missing(known(links), 'link', `questions[${q.id}].links`, q.links)),
    ...claims.flatMap((c) => missing(known(sources), 'source', `claims[${c.id}].source`, [c.source])),
    ...missing(known(claims), 'claim', 'texts', quoted),
    ...claims.filter((c) => !quoted.includes(c.id)).map((c) => `claims[${c.id}]: no text quotes it`),
    ...missing(known(questions), 'answer to', 'questions', [...expected]),
    ...questions.filter((q) => !expected.includes(q.id)).map((q) => `questions[${q.id}]: there is no such question`),
  ];
}

/** A figure that is typed into a text has no source: it must be a claim. */
function typedFigures({ names, claims, sources, links, ...rest }: Vendor): string[] {
  return texts(rest, '')
    .filter(([path]) => !/(^|\.)(id|words|sources|links)(\[|$)/.test(path))
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
