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
import type { Figure } from '../figures';
import { parse, withoutFigures, quoted, type Part } from '../parse';
import { pages } from '../../registry';
import { contentOf } from '.';
import { IN_DOCUMENTS } from './published';
import file from './published.json';

const names = readdirSync(__dirname).filter((name) => name.endsWith('.md'));

/** A part and all parts below it. */
const flat = (part: Part): Part[] => [part, ...part.parts.flatMap(flat)];

/** Every part of a Markdown file. */
const partsOf = (name: string) => parse(readFileSync(join(__dirname, name), 'utf8')).flatMap(flat);
const own = names.flatMap(partsOf);

/** The texts of parts, by their titles. */
const said = (parts: Part[]) =>
  parts.flatMap(({ title, blocks }) => blocks.map(({ text }): [string, string] => [title, text]));

describe('the Markdown files', () => {
  it('depend on every condition somewhere', () => {
    const needed = own.flatMap(({ needs, blocks }) => [needs, ...blocks.map(({ when }) => when)]);
    expect(CONDITIONS.filter((one) => !needed.includes(one))).toEqual([]);
  });

  it('have one address each', () => {
    for (const ids of names.map((name) => partsOf(name).flatMap(({ id }) => id || []))) {
      expect(ids).toEqual(Array.from(new Set(ids)));
    }
  });

  it('name no vendor', () => {
    const theirs = [digitalocean, neutral].flatMap(({ name, names: products }) => [name, ...products]);
    const text = JSON.stringify([own, said(own)]).replaceAll('GTC Demo: Optimized LLM Inference', '');
    expect(theirs.filter((name) => text.includes(name))).toEqual([]);
  });
});

describe.each(Object.keys(vendors) as VendorName[])('under the vendor %s,', (vendorName) => {
  const vendor: Vendor = { neutral, digitalocean }[vendorName];
  const content = contentOf(vendor);
  const { pitch, vendorPitch, visitors, takeaways, story, groups, glossary, readOn, published } = content;
  const questions = groups.flatMap((group) => group.questions);

  /** Every text of the guide, by its place. */
  const texts: Array<[string, string]> = [
    ...said(own.map((part) => ({ ...part, blocks: [{ text: part.title }, ...part.blocks] }))),
    ...said([pitch, takeaways, glossary, readOn].flatMap(flat)),
    ...said(questions),
    ...visitors.flatMap(({ id, who, first, leave }) =>
      [who, ...first, ...leave].map((one): [string, string] => [`visitor ${id}`, one])
    ),
    ...story.parts.map(({ id, text }): [string, string] => [`story ${id}`, text]),
    ['vendor pitch', vendorPitch.text],
    ['vendor message', story.message],
  ];

  describe('the booth guide’s questions', () => {
    it('are complete, in their groups', () => {
      expect(groups.map(({ id, questions: of }) => [id, of.map((one) => one.id)])).toEqual([
        ['demo', ['running', 'rps-low', 'crossover', 'disaggregated', 'model', 'slos', 'benchmarks']],
        ['platform', vendor.questions.map(({ id }) => id)],
        ['technical', ['router', 'grove', ...vendor.technical.map(({ id }) => id)]],
      ]);
      expect(vendor.questions.length).toBeGreaterThanOrEqual(10);
    });

    it('and terms have one id each', () => {
      for (const list of [questions, glossary.parts]) {
        expect(new Set(list.map((one) => one.id)).size).toBe(list.length);
      }
    });

    it('have answers with short paragraphs, and known sources', () => {
      const long = said(questions).filter(([, text]) => withoutFigures(text).split(/\s+/).length > 65);
      expect(long).toEqual([]);
      const links = questions.flatMap((question) => question.links);
      expect(links.filter((link) => !readOn.links.includes(link))).toEqual([]);
    });
  });

  describe('texts', () => {
    const { figures } = buildFacts({ live: live(), baselines: [], published });
    const ofVendor = ['vendor.name', 'vendor.router'];
    const used = new Set(texts.flatMap(([, text]) => quoted(text)));

    it('quote every known figure, and no other', () => {
      expect(Array.from(used).filter((name) => !(name in figures) && !ofVendor.includes(name))).toEqual([]);
      const unused = Object.keys(figures).filter((name) => !used.has(name) && !/^(twin|here)\./.test(name));
      expect(unused).toEqual([]);
    });

    it('have no unmatched brace', () => {
      expect(texts.filter(([, text]) => /[{}]/.test(text.replace(/\{[a-z0-9.-]+\}/g, '')))).toEqual([]);
      const resolved = JSON.stringify([groups, pitch, takeaways]);
      expect(ofVendor.filter((name) => resolved.includes(`{${name}}`))).toEqual([]);
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
        /\d/.test(withoutNames(withoutFigures(text), [...known, ...phases, ...vendor.names]))
      );
      expect(typed).toEqual([]);
    });

    it('name the publication of every figure, or that only the documents of the demonstration contain it', () => {
      const claimed = Object.values(published).filter(({ word }) => word !== 'example');
      expect(claimed).toHaveLength(file.figures.length + vendor.claims.length);
      const sourced = ({ word, source }: Figure) =>
        source ? /^published/.test(word) && source.url.startsWith('https://') : word.startsWith(IN_DOCUMENTS);
      expect(claimed.filter((one) => !sourced(one))).toEqual([]);
    });

    it('with the vendor’s figures ask to check them', () => {
      const claiming = questions.filter(({ blocks }) => /\{claim\./.test(JSON.stringify(blocks)));
      expect(claiming.filter(({ blocks }) => !/^Check these figures before/.test(blocks.at(-1)?.text ?? ''))).toEqual(
        []
      );
    });
  });

  it('the pitch takes thirty seconds', () => {
    const [, ...spoken] = pitch.blocks;
    const always = [...spoken.filter(({ when }) => when === undefined || when === 'running'), vendorPitch];
    const words = always
      .map(({ text }) => withoutFigures(text))
      .join(' ')
      .split(/\s+/).length;
    expect(words).toBeLessThanOrEqual(100); // at 200 words a minute
  });

  it('sources to read on are public, each once', () => {
    const urls = readOn.links.map((one) => one.url);
    expect(urls.filter((url) => !url?.startsWith('https://'))).toEqual([]);
    expect(new Set(urls).size).toBe(urls.length);
  });

  it('visitors refer to existing questions', () => {
    const known = questions.map((question) => question.id);
    expect(visitors).toHaveLength(4);
    expect(visitors.flatMap((visitor) => visitor.asks).filter((id) => !known.includes(id))).toEqual([]);
  });
});

it('every page of the app is explained, and no other', () => {
  const [explained] = parse(readFileSync(join(__dirname, 'screens.md'), 'utf8'));
  const there = pages.filter(({ id, nested }) => !nested && id !== 'guide');
  const about = ({ title, id, needs }: Part) => [title, id, needs === 'twin'];
  expect(explained.parts.map(about)).toEqual(there.map(({ title, id, twin }) => [title, id, twin === true]));
  expect(there.map(({ path }) => path || 'dashboard')).toEqual(there.map(({ id }) => id));
});

it('every panel of the detailed dashboard is explained by its title', () => {
  const { panels } = JSON.parse(readFileSync(join(__dirname, '../../../../dashboards/gtc-demo.json'), 'utf8'));
  const titles = (panels as Array<{ title: string; type: string }>)
    .filter(({ type }) => type !== 'row')
    .map(({ title }) => title.replace(/ \(SLO: .*/, ''));
  const dashboard = partsOf('screens.md').find(({ id }) => id === 'gtc-demo');
  expect(dashboard?.parts.flatMap(({ title }) => title.split(', ')).sort()).toEqual(titles.sort());
});

it('every phase is a step', () => {
  const steps = partsOf('checklist.md').filter(({ id }) => id.startsWith('phase-'));
  const phases = PHASES.map(({ id, title }) => [`phase-${id}`, `Phase ${id}: ${title}`]);
  expect(steps.map(({ id, title }) => [id, title])).toEqual(phases);
});

it('the terms of deployments are explained', () => {
  const wanted = ['tensorrt-llm', 'gpu-utilization', 'gpu-memory', 'router-mode', 'block-size', 'event-publishing'];
  const terms = partsOf('glossary.md');
  expect(wanted.filter((id) => !terms.some((term) => term.id === id))).toEqual([]);
  const modes = terms.find(({ id }) => id === 'router-mode');
  expect(modes?.blocks[0].text).toMatch(/“round_robin”.*“round-robin”/);
});
