import { z } from 'zod';

/** Each message is said of a field by its path: "pitch: must be a text that is not empty". */
const TEXT = 'must be a text that is not empty';
const ID = 'must be an id of small letters, digits and hyphens';
const URL = 'must be an https address';
const LIST = 'must be a list with something in it';

const text = z.string(TEXT).regex(/\S/, TEXT);
const id = z.string(ID).regex(/^[a-z][a-z0-9-]*$/, ID);
const url = z.string(URL).regex(/^https:\/\/[^\s]+$/, URL);

const object = <T extends z.ZodRawShape>(shape: T) =>
  z.strictObject(shape, {
    error: ({ code }) => (code === 'unrecognized_keys' ? 'there is no such field' : 'must be an object'),
  });

const any = <T extends z.ZodType>(item: T, message = 'must be a list') =>
  z.array(item, message).superRefine((items, { addIssue }) => {
    const ids = items.map((one) => (one as { id?: string }).id);
    const twice = ids.filter((known, i) => known !== undefined && ids.indexOf(known) !== i);
    twice.forEach((known) => addIssue(`“${known}” is there twice`));
  });

const some = <T extends z.ZodType>(item: T) => any(item, LIST).min(1, LIST);

const platform = object({
  name: text,
  text,
  /** Node groups, storage, network entry …, with what belongs to each. */
  groups: some(object({ id, title: text, text, items: some(object({ id, title: text, text })) })),
});

/** What to say of the vendor to each kind of visitor. */
const visitors = object({ returning: text, newcomer: text, evaluator: text, technical: text });

/**
 * Everything that belongs to one vendor; all of it comes from vendor.json.
 * Texts quote figures in braces: {claim.id} for a published one, {rec.gpu} and
 * the like for what the guide knows of the recorded runs.
 */
export const schema = object({
  /** As a person says it. */
  name: text,
  /** Names of its products and places: digits in them are no figures, and no text but its own uses them. */
  names: any(text),
  /** The vendor's part of the thirty-second pitch. */
  pitch: text,
  /** The last of the four takeaways. */
  takeaway: text,
  /** What the platform's story comes down to. */
  message: text,
  visitors,
  story: some(object({ id, title: text, text })),
  platform,
  /** The questions of VENDOR_QUESTIONS, in whatever order: words to look for them by, paragraphs, ids of sources and links. */
  questions: some(
    object({ id, question: text, words: any(text), answer: some(text), sources: any(id), links: any(id) })
  ),
  /** Words that only this vendor uses. */
  terms: any(object({ id, term: text, text })),
  /** Figures that the vendor has published, with their units, and the ids of their sources. */
  claims: any(object({ id, value: text, source: id })),
  /** Where something was published, for everybody to read: what has no public address is no source. */
  sources: some(object({ id, title: text, url })),
  /** Where to read on. */
  links: any(object({ id, title: text, url })),
});

/** Everything that belongs to one vendor. */
export type Vendor = z.infer<typeof schema>;

/** What the serving cluster stands on. */
export type Platform = z.infer<typeof platform>;

/** The four kinds of visitor that the guide knows. */
export type VisitorKind = keyof z.infer<typeof visitors>;
