/** @jest-environment node */
import { readdirSync, readFileSync } from 'fs';
import { join } from 'path';

import { vendors, type Vendor, type VendorName } from '../../../vendor';
import digitalocean from '../../../vendor/digitalocean.json';
import neutral from '../../../vendor/neutral.json';
import { withoutNames } from '../../../test/vendorMistakes';
import { PHASES } from '../../../lib/phases';
import { live } from '../../../test/fixtures';
import { buildFacts, CONDITIONS } from '../facts';
import { withoutFigures, quoted, type Part } from '../parse';
import { pages } from '../../registry';
import { chaptersOf } from '.';
import { IN_DOCUMENTS, publishedFigures } from './published';
import file from './published.json';

/** The Markdown of the guide, without the vendor's texts. */
const markdown = readdirSync(__dirname)
  .filter((name) => name.endsWith('.md'))
  .map((name) => readFileSync(join(__dirname, name), 'utf8'))
  .join('\n');

/** A part and all parts below it. */
const flat = (part: Part): Part[] => [part, ...part.parts.flatMap(flat)];

const chapter = (id: string) => chaptersOf(neutral).find((one) => one.id === id);
const partsOf = (id: string) => chapter(id)?.parts ?? [];

/** The addresses of the links in a text. */
const linksIn = (text: string) => Array.from(text.matchAll(/\]\((https?:[^)]+)\)/g), ([, url]) => url);

it('the Markdown names no vendor', () => {
  const theirs = [digitalocean, neutral].flatMap(({ name, names: products }) => [name, ...products]);
  const text = markdown.replaceAll('GTC Demo: Optimized LLM Inference', '');
  expect(theirs.filter((name) => text.includes(name))).toEqual([]);
});

it('published figures have a source beside them, or are marked', () => {
  const sources = file.flatMap(({ source }) => source ?? []);
  expect(sources.filter((url) => !linksIn(markdown).includes(url))).toEqual([]);
});

describe.each(Object.keys(vendors) as VendorName[])('under the vendor %s,', (vendorName) => {
  const vendor: Vendor = { neutral, digitalocean }[vendorName];
  const chapters = chaptersOf(vendor);
  const parts = chapters.flatMap(flat);
  const published = publishedFigures(vendor);
  const entriesOf = (id: string) => chapters.find((one) => one.id === id)?.parts ?? [];
  const questions = ['questions', 'platform', 'technical'].map(entriesOf);

  /** Every text of the guide, with the title above it. */
  const texts = parts.flatMap(({ title, blocks }) =>
    [title, ...blocks.map(({ text }) => text)].map((text) => [title, text])
  );

  it('questions are complete, in their chapters', () => {
    const ids = questions.map((entries) => entries.map(({ id }) => id.replace('question-', '')));
    expect(ids).toEqual([
      ['running', 'rps-low', 'crossover', 'disaggregated', 'model', 'slos', 'benchmarks'],
      vendor.questions.map(({ id }) => id),
      ['router', 'grove', ...vendor.technical.map(({ id }) => id)],
    ]);
    expect(vendor.questions.length).toBeGreaterThanOrEqual(10);
  });

  it('every chapter and entry has one address', () => {
    const ids = chapters.flatMap((one) => [one, ...one.parts]).map(({ id }) => id);
    expect(ids.filter((id, i) => ids.indexOf(id) !== i)).toEqual([]);
  });

  it('every condition is used', () => {
    const needed = parts.flatMap(({ needs, blocks }) => [needs, ...blocks.map(({ when }) => when)]);
    expect(CONDITIONS.filter((one) => !needed.includes(one))).toEqual([]);
  });

  it('answers have short paragraphs', () => {
    const answers = questions.flat().flatMap(({ blocks }) => blocks.filter(({ kind }) => kind === 'paragraph'));
    expect(answers.filter(({ text }) => withoutFigures(text).split(/\s+/).length > 65)).toEqual([]);
  });

  it('answers name the sources of the vendor’s figures, and ask to check them', () => {
    for (const { id, sources } of [...vendor.questions, ...vendor.technical]) {
      const text =
        questions
          .flat()
          .find((one) => one.id === `question-${id}`)
          ?.blocks.map((block) => block.text)
          .join('\n') ?? '';
      const claims = vendor.claims.filter((claim) => text.includes(`{claim.${claim.id}}`));
      const wanted = [...sources, ...claims.flatMap(({ source }) => source ?? [])];
      const urls = vendor.sources.flatMap((source) => (wanted.includes(source.id) ? source.url : []));
      expect(urls.filter((url) => !linksIn(text).includes(url))).toEqual([]);
      expect(text.includes('Check these figures before')).toBe(claims.length > 0);
    }
  });

  describe('texts', () => {
    const { figures } = buildFacts({ live: live(), baselines: [], published });
    const used = new Set(texts.flatMap(([, text]) => quoted(text)));

    it('quote every known figure, and no other', () => {
      expect(Array.from(used).filter((name) => !(name in figures))).toEqual([]);
      const unused = Object.keys(figures).filter((name) => !used.has(name) && !/^(twin|here)\./.test(name));
      expect(unused).toEqual([]);
    });

    it('have no unmatched brace', () => {
      expect(texts.filter(([, text]) => /[{}]/.test(text.replace(/\{[a-z0-9.-]+\}/g, '')))).toEqual([]);
    });

    it('contain no typed figure', () => {
      const known = [
        'FP8',
        'FP16',
        'EAGLE-3',
        'Llama 3.1 70B',
        'Llama 3.3 70B',
        'p50',
        'p95',
        '95 of 100',
        'HTTP/2',
        'last 60 s',
        'Interval (95 %)',
      ];
      const phases = [...PHASES.map(({ id }) => `Phase ${id}`), 'phases 1, 2, 3a and 3b', 'with 3a'];
      const typed = texts.filter(([, text]) =>
        /\d/.test(
          withoutNames(withoutFigures(text).replace(/\[[^\]]*\]\([^)]*\)/g, ''), [...known, ...phases, ...vendor.names])
        )
      );
      expect(typed).toEqual([]);
    });

    it('mark every published figure', () => {
      const claimed = Object.values(published).filter(({ word }) => word !== 'example');
      expect(claimed).toHaveLength(file.length + vendor.claims.length);
      expect(claimed.filter(({ word }) => !word.startsWith('published') && !word.startsWith(IN_DOCUMENTS))).toEqual([]);
    });
  });

  it.each([
    ['first-look', 100, 160],
    ['pitch', 60, 100],
    ['talk', 390, 450],
  ])('%s is as long as its title says, at 150 to 200 words a minute', (id, least, most) => {
    const [, ...spoken] = chapters.find((one) => one.id === id)?.blocks ?? [];
    const always = spoken
      .filter(({ when }) => when === undefined || when === 'running')
      .map(({ text }) => text.replace(/\{[^}]*\}/g, 'one'));
    const words = always.join(' ').split(/\s+/).length;
    expect(words).toBeGreaterThanOrEqual(least);
    expect(words).toBeLessThanOrEqual(most);
  });

  it('links for further reading are public, and all are in the last chapter, each once', () => {
    const urls = linksIn(
      chapters
        .at(-1)
        ?.blocks.map(({ text }) => text)
        .join('\n') ?? ''
    );
    expect(urls.filter((url) => !url.startsWith('https://'))).toEqual([]);
    expect(new Set(urls).size).toBe(urls.length);
    const notes = questions.flat().flatMap(({ blocks }) => blocks.filter(({ text }) => text.startsWith('Read on:')));
    expect(notes.flatMap(({ text }) => linksIn(text)).filter((url) => !urls.includes(url))).toEqual([]);
  });
});

it('every page of the app is explained and linked, and no other', () => {
  const explained = partsOf('screens').filter(({ title }) => !title.startsWith('Grafana: '));
  const there = pages.filter(({ id, nested }) => !nested && id !== 'guide');
  const about = ({ title, id, needs, blocks }: Part) => [title, id, needs === 'twin', blocks[0].text];
  const link = ({ title, path }: (typeof there)[number]) => `[Open “${title}”](page://${path})`;
  expect(explained.map(about)).toEqual(
    there.map((page) => [page.title, `screen-${page.id}`, page.twin === true, link(page)])
  );
});

it('every panel of the detailed dashboard is explained by its title', () => {
  const { panels } = JSON.parse(readFileSync(join(__dirname, '../../../../dashboards/gtc-demo.json'), 'utf8'));
  const titles = (panels as Array<{ title: string; type: string }>)
    .filter(({ type }) => type !== 'row')
    .map(({ title }) => title.replace(/ \(SLO: .*/, ''));
  const dashboard = partsOf('screens').find(({ id }) => id === 'screen-gtc-demo');
  expect(dashboard?.parts.flatMap(({ title }) => title.split(', ')).sort()).toEqual(titles.sort());
});

it('every phase is a step', () => {
  const steps = partsOf('checklist').find(({ id }) => id === 'steps-phases');
  expect(steps?.parts.map(({ title }) => title)).toEqual(PHASES.map(({ id, title }) => `Phase ${id}: ${title}`));
});

it('the terms of deployments are explained', () => {
  const wanted = ['tensorrt-llm', 'gpu-utilization', 'gpu-memory', 'router-mode', 'block-size', 'event-publishing'];
  const terms = partsOf('glossary');
  expect(wanted.filter((id) => !terms.some((term) => term.id === `term-${id}`))).toEqual([]);
  const modes = terms.find(({ id }) => id === 'term-router-mode');
  expect(modes?.blocks[0].text).toMatch(/“round_robin”.*“round-robin”/);
});
