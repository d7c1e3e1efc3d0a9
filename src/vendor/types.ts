/** One thing of the platform, as the drawing explains it. */
export interface PlatformItem {
  id: string;
  title: string;
  text: string;
}

/** Things of the platform that belong together: node groups, storage, network entry … */
export interface PlatformGroup {
  id: string;
  title: string;
  text: string;
  items: PlatformItem[];
}

/** What the serving cluster stands on. */
export interface Platform {
  name: string;
  text: string;
  groups: PlatformGroup[];
}

/** The four kinds of visitor that the guide knows. */
export type VisitorKind = 'returning' | 'newcomer' | 'evaluator' | 'technical';

/** One part of the platform's story. */
export interface StoryPart {
  id: string;
  title: string;
  text: string;
}

/** A question whose answer is the vendor's. */
export interface VendorQuestion {
  id: string;
  question: string;
  /** What else it is looked for by. */
  words: string[];
  /** Paragraphs. */
  answer: string[];
  /** Where it was published: ids of sources. */
  sources: string[];
  /** Where to read on: ids of links. */
  links: string[];
}

/** A word that only this vendor uses. */
export interface VendorTerm {
  id: string;
  term: string;
  text: string;
}

/** A figure that the vendor has published; texts quote it as {claim.id}. */
export interface Claim {
  id: string;
  /** With its unit. */
  value: string;
  /** The id of its source. */
  source: string;
}

/** Where something was published. */
export interface Source {
  id: string;
  title: string;
  /** Absent where it is not public. */
  url?: string;
}

/** Where to read on. */
export interface VendorLink {
  id: string;
  title: string;
  url: string;
}

/**
 * Everything that belongs to one vendor; all of it comes from vendor.json.
 * Texts quote figures in braces: {claim.id} for a published one, {rec.gpu} and
 * the like for what the guide knows of the recorded runs.
 */
export interface Vendor {
  /** As a person says it. */
  name: string;
  /** Names of its products and places: digits in them are no figures, and no text but its own uses them. */
  names: string[];
  /** The vendor's part of the thirty-second pitch. */
  pitch: string;
  /** The last of the four takeaways. */
  takeaway: string;
  /** What the platform's story comes down to. */
  message: string;
  /** What to say of the vendor to each kind of visitor. */
  visitors: Record<VisitorKind, string>;
  story: StoryPart[];
  platform: Platform;
  /** The questions of VENDOR_QUESTIONS, in whatever order. */
  questions: VendorQuestion[];
  terms: VendorTerm[];
  claims: Claim[];
  sources: Source[];
  links: VendorLink[];
}
