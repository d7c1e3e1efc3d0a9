import type { Vendor, VendorQuestion } from '../../../vendor';
import type { Figures, Reference } from '../figures';
import { definitions, parse, part, quoted, type Block, type Part } from '../parse';
import glossaryFile from './glossary.md';
import pitchFile from './pitch.md';
import { IN_DOCUMENTS, publishedFigures } from './published';
import questionsFile from './questions.md';
import sourcesFile from './sources.md';
import takeawaysFile from './takeaways.md';
import { visitors, type Visitor } from './visitors';

/** A question with its answer, the sources of its figures, and further reading. */
export interface Question extends Part {
  sources: Reference[];
  links: Reference[];
}

/** A group of questions. */
export interface QuestionGroup {
  id: string;
  title: string;
  questions: Question[];
}

/** The parts of the guide that depend on the vendor, wholly or in part. */
export interface Content {
  /** The pitch without the vendor's part, which precedes or follows it. */
  pitch: Part;
  vendorPitch: Block;
  visitors: Visitor[];
  takeaways: Part;
  /** Similar workloads, and what others report of them. */
  similar: Part;
  others: Part;
  story: Vendor['story'];
  groups: QuestionGroup[];
  glossary: Part;
  readOn: Part & { links: Reference[] };
  /** The fixed figures that texts quote. */
  published: Figures;
}

/** The guide of one vendor. */
export function contentOf(vendor: Vendor): Content {
  const read = (file: string) =>
    parse(file.replaceAll('{vendor.name}', vendor.name).replaceAll('{vendor.router}', vendor.router));
  const [pitch] = read(pitchFile);
  const [takeaways, similar, others] = read(takeawaysFile);
  const [glossary] = read(glossaryFile);
  const [readOn] = read(sourcesFile);
  const { title, text } = vendor.takeaway;
  return {
    pitch,
    vendorPitch: { text: vendor.pitch },
    visitors: visitors(vendor),
    takeaways: { ...takeaways, parts: [...takeaways.parts, part('', title, [text])] },
    similar,
    others,
    story: vendor.story,
    groups: read(questionsFile).map((group) => questionGroup(group, vendor)),
    glossary: { ...glossary, parts: alphabetical([...glossary.parts, ...vendor.terms.map(toTerm)]) },
    readOn: { ...readOn, links: [...Object.values(publicSources), ...vendor.links] },
    published: publishedFigures(vendor),
  };
}

const publicSources = definitions(sourcesFile);

/** Merges the vendor's answers from its file. */
function questionGroup({ id, title, parts }: Part, vendor: Vendor): QuestionGroup {
  const theirs = { platform: vendor.questions, technical: vendor.technical }[id] ?? [];
  return {
    id,
    title,
    questions: [...parts.map(withSources), ...theirs.map((question) => toQuestion(question, vendor))],
  };
}

function withSources(question: Part): Question {
  const { readOn = [] } = question;
  return { ...question, sources: [], links: readOn.map((label) => publicSources[label]) };
}

/** The note below an answer with figures of the vendor. */
const CHECK = `Check these figures before the event. Those marked “${IN_DOCUMENTS}” have no public source.`;

function toQuestion({ id, question, words, answer, sources, links }: VendorQuestion, vendor: Vendor): Question {
  const hasClaims = answer.flatMap(quoted).some((name) => name.startsWith('claim.'));
  return {
    ...part(id, question, hasClaims ? [...answer, CHECK] : answer),
    also: words.join(', '),
    sources: vendor.sources.filter((source) => sources.includes(source.id)),
    links: vendor.links.filter((link) => links.includes(link.id)),
  };
}

function toTerm({ id, term, text }: Vendor['terms'][number]): Part {
  return part(id, term, [text]);
}

function alphabetical(terms: Part[]): Part[] {
  return terms.sort((a, b) => a.title.localeCompare(b.title, 'en'));
}
