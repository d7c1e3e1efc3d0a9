import { z } from 'zod';

/** Each message is said of a field by its path: "pitch: must be a non-empty string". */
const TEXT = 'must be a non-empty string';
const ID = 'must be an id of lower-case letters, digits and hyphens';
const URL = 'must be an https URL';
const LIST = 'must be a non-empty list';
const DATE = 'must be a year, or a year with month, or a day, such as 2026-03';

const text = z.string(TEXT).regex(/\S/, TEXT);
const id = z.string(ID).regex(/^[a-z][a-z0-9-]*$/, ID);
const date = z.string(DATE).regex(/^\d{4}(-\d{2}){0,2}$/, DATE);
const url = z.string(URL).regex(/^https:\/\/[^\s]+$/, URL);

const object = <T extends z.ZodRawShape>(shape: T) =>
  z.strictObject(shape, {
    error: ({ code }) => (code === 'unrecognized_keys' ? 'unknown field' : 'must be an object'),
  });

const listOf = <T extends z.ZodType>(item: T, message = 'must be a list') =>
  z.array(item, message).superRefine((items, { addIssue }) => {
    const ids = items.map((one) => (one as { id?: string }).id);
    const twice = ids.filter((known, i) => known !== undefined && ids.indexOf(known) !== i);
    twice.forEach((known) => addIssue(`“${known}” is there twice`));
  });

const nonEmptyListOf = <T extends z.ZodType>(item: T) => listOf(item, LIST).min(1, LIST);

/** What the cluster stands on, as a drawing: a heading, and groups of things below it. */
const platform = object({
  name: text,
  text,
  /**
   * Node groups, storage, network entry …, with what belongs to each. Of the things "gpu",
   * "operator", "monitoring" and "enduser" the drawing says what is seen of them.
   */
  groups: nonEmptyListOf(object({ id, title: text, text, items: nonEmptyListOf(object({ id, title: text, text })) })),
});

const question = object({
  id,
  question: text,
  /** What else it is looked for by. */
  words: listOf(text),
  /** Paragraphs. */
  answer: nonEmptyListOf(text),
  sources: listOf(id),
  links: listOf(id),
});

/**
 * Everything that belongs to one vendor; all of it comes from its file, such as digitalocean.json.
 * Texts quote figures in braces: {claim.id} for a published one, {rec.gpu} and
 * the like for what the guide knows of the recorded runs.
 */
export const schema = object({
  /** As a person says it; it begins no sentence. */
  name: text,
  /** Names of its products and places: digits in them are no figures, and no text but its own uses them. */
  names: listOf(text),
  /** The router as the pitch names it, at the beginning of a sentence. */
  router: text,
  /** The vendor's part of the thirty-second pitch. */
  pitch: text,
  /** The last of the four takeaways. */
  takeaway: object({ title: text, text }),
  /** The platform below the cluster, as text: a heading, the kind of its figures, the parts, and the conclusion. */
  story: object({ title: text, info: text, parts: nonEmptyListOf(object({ id, title: text, text })), message: text }),
  platform,
  /** What visitors ask about the platform, in the order of the guide. */
  questions: nonEmptyListOf(question),
  /** What the curious ask, after the guide's own such questions. */
  technical: nonEmptyListOf(question),
  /** Words that only this vendor uses. */
  terms: listOf(object({ id, term: text, text })),
  /**
   * Figures of the vendor's, with their units, the date that they are of, and the ids of their sources.
   * One without a source is in the documents of the demonstration alone.
   */
  claims: listOf(object({ id, value: text, date, source: id.optional() })),
  /** A public address where something was published. What has none is no source. */
  sources: listOf(object({ id, title: text, url })),
  /** Where to read on. */
  links: listOf(object({ id, title: text, url })),
});

/** Everything that belongs to one vendor. */
export type Vendor = z.infer<typeof schema>;

/** A question of a vendor's file, with its answer. */
export type VendorQuestion = z.infer<typeof question>;

/** What the serving cluster stands on. */
export type Platform = z.infer<typeof platform>;
