/** @jest-environment node */
import { readFileSync } from 'fs';
import { join } from 'path';

import { vendors, type Vendor, type VendorName } from '../../../vendor';
import digitalocean from '../../../vendor/digitalocean.json';
import neutral from '../../../vendor/neutral.json';
import { withoutNames } from '../../../vendor/validate';
import { PHASES } from '../../../lib/phases';
import { laneSnapshot, snapshot } from '../../../test/fixtures';
import { buildFacts } from '../facts';
import type { Figure } from '../figures';
import { plain, quoted } from '../text';
import { pages } from '../../registry';
import { contentOf } from '.';
import { IN_DOCUMENTS } from './published';
import file from './published.json';
import { results } from './results';
import { scenes } from './scenes';
import { others, parallels } from './story';
import type { Paragraph } from './types';

describe.each(Object.keys(vendors) as VendorName[])('under the vendor %s,', (name) => {
  const vendor: Vendor = { neutral, digitalocean }[name];
  const content = contentOf(vendor);
  const { pitch, vendorPitch, visitors, takeaways, story, screens, groups, glossary, readOn, published } = content;
  const questions = groups.flatMap((group) => group.questions);

  /** Every text of the guide, by where it stands. */
  const texts: Array<[string, Paragraph]> = [
    ...questions.flatMap(({ id, answer }) => answer.map((one): [string, Paragraph] => [`question ${id}`, one])),
    ...glossary.map(({ id, text }): [string, Paragraph] => [`term ${id}`, text]),
    ...pitch.map((one): [string, Paragraph] => ['pitch', one]),
    ...takeaways.flatMap(({ id, text, numbers, deep }) =>
      [text, numbers, deep].flatMap((one): Array<[string, Paragraph]> => (one ? [[`takeaway ${id}`, one]] : []))
    ),
    ...parallels.map(({ id, text }): [string, Paragraph] => [`parallel ${id}`, text]),
    ...others.map((one): [string, Paragraph] => ['others', one]),
    ...visitors.flatMap(({ id, who, first, leave }) =>
      [who, ...first, ...leave].map((one): [string, Paragraph] => [`visitor ${id}`, one])
    ),
    ...story.parts.map(({ id, text }): [string, Paragraph] => [`story ${id}`, text]),
    ...results.flatMap(({ id, text }) => text.map((one): [string, Paragraph] => [`result ${id}`, one])),
    ...scenes.flatMap(({ id, text, steps, fair }) =>
      [...text, ...steps, ...fair].map((one): [string, Paragraph] => [`scene ${id}`, one])
    ),
    ...screens.flatMap(({ id, items }) => items.map(({ text }): [string, Paragraph] => [`screen ${id}`, text])),
    ['vendor pitch', vendorPitch],
    ['vendor message', story.message],
  ];

  describe('the booth guide’s questions', () => {
    it('are all there, in their groups', () => {
      expect(groups.map(({ id, questions: of }) => [id, of.map((one) => one.id)])).toEqual([
        ['demo', ['running', 'rps-low', 'crossover', 'disaggregated', 'model', 'slos', 'benchmarks']],
        ['platform', vendor.questions.map(({ id }) => id)],
        ['technical', ['router', 'grove', ...vendor.technical.map(({ id }) => id)]],
      ]);
      expect(vendor.questions.length).toBeGreaterThanOrEqual(10);
    });

    it('and terms have one id each', () => {
      for (const list of [questions, glossary]) {
        expect(new Set(list.map((one) => one.id)).size).toBe(list.length);
      }
    });

    it('have answers with short paragraphs', () => {
      const long = questions.flatMap(({ id, answer }) =>
        answer.filter((one) => plain(one).split(/\s+/).length > 65).map(() => id)
      );
      expect(long).toEqual([]);
    });
  });

  describe('texts', () => {
    const shown = snapshot();
    const { figures } = buildFacts({
      live: { state: { status: 'live', snapshot: shown, receivedAt: 0 }, lane: laneSnapshot() },
      baselines: [],
      published,
    });

    it('quote no figure that nobody knows', () => {
      const unknown = texts.flatMap(([where, one]) =>
        quoted(typeof one === 'string' ? one : one.text)
          .filter((name) => !(name in figures))
          .map((name) => `${where}: ${name}`)
      );
      expect(unknown).toEqual([]);
    });

    it('type no figure: each comes with its word', () => {
      const own = [
        'FP8',
        'FP16',
        'EAGLE-3',
        'Llama 3.1 70B',
        'Llama 3.3 70B',
        'p50',
        'p95',
        'tokens − 1',
        '95 of 100',
        'HTTP/2',
        'last 60 s',
      ];
      const phases = PHASES.map(({ id }) => `Phase ${id}`).concat('with 3a');
      const typed = texts
        .filter(([, one]) => /\d/.test(withoutNames(plain(one), [...own, ...phases, ...vendor.names])))
        .map(([where, one]) => `${where}: ${plain(one)}`);
      expect(typed).toEqual([]);
    });

    it('say of every figure where it was published, or that it is in the documents of the demonstration alone', () => {
      const told = Object.values(published).filter(({ word }) => word !== 'example');
      expect(told).toHaveLength(file.figures.length + vendor.claims.length);
      const sourced = ({ word, source }: Figure) =>
        source ? /^published/.test(word) && source.url.startsWith('https://') : word.startsWith(IN_DOCUMENTS);
      expect(told.filter((one) => !sourced(one))).toEqual([]);
    });

    it('of the vendor’s ask to check its figures', () => {
      const claiming = questions.filter(({ answer }) => /\{claim\./.test(JSON.stringify(answer)));
      expect(claiming.filter(({ answer }) => !/^Check these figures before/.test(plain(answer.at(-1) ?? '')))).toEqual(
        []
      );
    });

    it('quote every published figure somewhere', () => {
      const used = new Set(texts.flatMap(([, one]) => quoted(typeof one === 'string' ? one : one.text)));
      expect(Object.keys(published).filter((name) => !used.has(name))).toEqual([]);
    });

    it('of the guide’s own name no vendor', () => {
      const answers = groups
        .filter((group) => group.id !== 'platform')
        .flatMap((group) => group.questions)
        .filter(({ id }) => !vendor.technical.some((one) => one.id === id))
        .flatMap(({ answer }) => answer.map(plain));
      const terms = glossary.filter(({ id }) => !vendor.terms.some((one) => one.id === id)).map(({ text }) => text);
      const own = [results, scenes, screens, others, parallels, takeaways.slice(0, 3)].map((one) =>
        JSON.stringify(one)
      );
      const told = [...answers, ...terms, ...own].join('\n');
      const theirs = [digitalocean, neutral].flatMap(({ name, names }) => [name, ...names]);
      expect(theirs.filter((name) => told.includes(name))).toEqual([]);
    });
  });

  it('the pitch can be said in thirty seconds', () => {
    const said = [...pitch.filter((one) => typeof one === 'string'), pitch[0], vendorPitch];
    const words = said.map(plain).join(' ').split(/\s+/).length;
    expect(words).toBeLessThanOrEqual(100); // at 200 words a minute
  });

  it('sources to read on are public, each once', () => {
    const urls = readOn.map((one) => one.url);
    expect(urls.filter((url) => !url?.startsWith('https://'))).toEqual([]);
    expect(new Set(urls).size).toBe(urls.length);
  });

  it('every page of the app is explained, and no other', () => {
    const explained = screens.flatMap(({ page }) => page ?? []);
    const own = pages.filter(({ id, nested }) => !nested && id !== 'guide');
    expect(explained).toEqual(own.map(({ path }) => path));
    const needTwin = screens.filter(({ twin }) => twin).map(({ page }) => page);
    expect(needTwin).toEqual(own.filter(({ twin }) => twin).map(({ path }) => path));
  });

  it('every panel of the detailed dashboard is explained under its title', () => {
    const { panels } = JSON.parse(readFileSync(join(__dirname, '../../../../dashboards/gtc-demo.json'), 'utf8'));
    const titles = (panels as Array<{ title: string; type: string }>)
      .filter(({ type }) => type !== 'row')
      .map(({ title }) => title.replace(/ \(SLO: .*/, ''));
    const explained = screens.find(({ id }) => id === 'gtc-demo')?.items.flatMap(({ name }) => name.split(', '));
    expect(explained?.sort()).toEqual(titles.sort());
  });

  it('the terms that deployments are asked about are there', () => {
    const wanted = ['tensorrt-llm', 'gpu-utilisation', 'gpu-memory', 'router-mode', 'block-size', 'event-publishing'];
    const known = glossary.map(({ id }) => id);
    expect(wanted.filter((id) => !known.includes(id))).toEqual([]);
    expect(glossary.find(({ id }) => id === 'router-mode')?.text).toMatch(/“round_robin”.*“round-robin”/);
  });

  it('visitors ask questions that there are', () => {
    const known = questions.map((question) => question.id);
    expect(visitors).toHaveLength(4);
    expect(visitors.flatMap((visitor) => visitor.asks).filter((id) => !known.includes(id))).toEqual([]);
  });
});
