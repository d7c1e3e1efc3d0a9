import type { Vendor, VendorQuestion } from '../../../vendor';
import { parse, quoted, type Part } from '../parse';
import glossary from './glossary.md';
import pitch from './pitch.md';
import { IN_DOCUMENTS } from './published';
import questions from './questions.md';
import results from './results.md';
import scenes from './scenes.md';
import screens from './screens.md';
import sources from './sources.md';
import steps from './steps.md';
import takeaways from './takeaways.md';

const files = [pitch, takeaways, results, scenes, steps, screens, questions, glossary, sources];

/** Returns the guide of one vendor, as chapters. The vendor's texts replace their names in braces: {vendor.terms}. */
export function chaptersOf(vendor: Vendor): Part[] {
  const texts = vendorTexts(vendor);
  const text = files.join('\n\n').replace(/\{vendor\.(\w+)\}/g, (_, name: string) => texts[name]);
  return parse(text).map((chapter) => (chapter.id === 'glossary' ? alphabetical(chapter) : chapter));
}

/** The texts of a vendor's file in Markdown, by their names. */
function vendorTexts(vendor: Vendor): Record<string, string> {
  const { name, router, pitch, takeaway, story, links } = vendor;
  const entries = (of: VendorQuestion[]) => of.map((question) => questionText(question, vendor)).join('\n\n');
  const parts = story.parts.map(({ title, text }) => `## ${title}\n\n${text}\n\n${published([text], [], vendor)}`);
  return {
    name,
    router,
    pitch,
    takeaway: `## ${takeaway.title}\n\n${takeaway.text}`,
    story: [`# ${story.title} {#story}`, '<!-- layout: cards -->', story.info, story.message, ...parts].join('\n\n'),
    questions: entries(vendor.questions),
    technical: entries(vendor.technical),
    terms: vendor.terms.map(({ id, term, text }) => `## ${term} {#term-${id}}\n\n${text}`).join('\n\n'),
    links: links.map((link) => `- ${anchor(link)}`).join('\n'),
  };
}

/** The note below an answer with figures of the vendor. */
const CHECK = `Check these figures before the event. Those marked “${IN_DOCUMENTS}” have no public source.`;

function questionText({ id, question, words, answer, sources, links }: VendorQuestion, vendor: Vendor): string {
  return [
    `## ${question} {#question-${id}}`,
    `<!-- also: ${words.join(', ')} -->`,
    ...answer,
    ...(claimsIn(answer).length > 0 ? [CHECK] : []),
    published(answer, sources, vendor),
    note(
      'Read on',
      vendor.links.filter((link) => links.includes(link.id))
    ),
  ].join('\n\n');
}

/** The sources of the vendor's figures in some texts, and further ones. */
function published(texts: string[], further: string[], { claims, sources }: Vendor): string {
  const quotedClaims = claimsIn(texts);
  const wanted = [...further, ...claims.flatMap(({ id, source = '' }) => (quotedClaims.includes(id) ? [source] : []))];
  return note(
    'Published, not measured here',
    sources.filter(({ id }) => wanted.includes(id))
  );
}

/** Returns the ids of the vendor's figures that some texts quote. */
function claimsIn(texts: string[]): string[] {
  return texts.flatMap(quoted).flatMap((name) => (name.startsWith('claim.') ? name.slice('claim.'.length) : []));
}

type Link = Vendor['links'][number];

function note(title: string, links: Link[]): string {
  return links.length > 0 ? `> ${title}: ${links.map(anchor).join(' · ')}` : '';
}

function anchor({ title, url }: Link): string {
  return `[${title}](${url})`;
}

function alphabetical(chapter: Part): Part {
  return { ...chapter, parts: [...chapter.parts].sort((a, b) => a.title.localeCompare(b.title, 'en')) };
}
