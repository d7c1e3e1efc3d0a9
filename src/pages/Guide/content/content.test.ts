import { PLATFORM_QUESTIONS, vendor } from '../../../vendor';
import { withoutNames } from '../../../vendor/validate';
import { PHASES } from '../../../lib/phases';
import { laneSnapshot, snapshot } from '../../../test/fixtures';
import { buildFacts } from '../facts';
import { plain, quoted } from '../text';
import { pages } from '../../registry';
import { glossary } from './glossary';
import { publishedFigures } from './published';
import { readOn } from './links';
import file from './published.json';
import { groups } from './questions';
import { results } from './results';
import { scenes } from './scenes';
import { screens } from './screens';
import { others, parallels, pitch, takeaways } from './story';
import type { Paragraph } from './types';
import { visitors } from './visitors';

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
  ...vendor.story.map(({ id, text }): [string, Paragraph] => [`story ${id}`, text]),
  ...results.flatMap(({ id, text }) => text.map((one): [string, Paragraph] => [`result ${id}`, one])),
  ...scenes.flatMap(({ id, text, steps, fair }) =>
    [...text, ...steps, ...fair].map((one): [string, Paragraph] => [`scene ${id}`, one])
  ),
  ...screens.flatMap(({ id, items }) => items.map(({ text }): [string, Paragraph] => [`screen ${id}`, text])),
  ['vendor pitch', vendor.pitch],
  ['vendor takeaway', vendor.takeaway],
  ['vendor message', vendor.message],
];

describe('the booth guide’s questions', () => {
  it('are all there, in their groups', () => {
    expect(groups.map(({ id, questions: of }) => [id, of.map((one) => one.id)])).toEqual([
      ['demo', ['rps-low', 'crossover', 'disaggregated', 'model', 'slos', 'benchmarks']],
      ['platform', [...PLATFORM_QUESTIONS]],
      ['technical', ['router', 'grove', 'network']],
    ]);
    expect(groups.map((group) => group.questions.length)).toEqual([6, 10, 3]);
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
    published: publishedFigures,
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
    const own = ['FP8', 'FP16', 'EAGLE-3', 'p50', 'p95', 'tokens − 1', '95 of 100', 'HTTP/2'];
    const phases = PHASES.map(({ id }) => `Phase ${id}`).concat('with 3a');
    const typed = texts
      .filter(([, one]) => /\d/.test(withoutNames(plain(one), [...own, ...phases, ...vendor.names])))
      .map(([where, one]) => `${where}: ${plain(one)}`);
    expect(typed).toEqual([]);
  });

  it('say of every published figure where it was published', () => {
    const sources = Object.values(publishedFigures).filter(({ word }) => word === 'published');
    expect(sources.length).toBeGreaterThan(file.figures.length);
    expect(sources.filter(({ source }) => !source?.url.startsWith('https://'))).toEqual([]);
    expect(Object.values(publishedFigures).filter(({ word }) => !['published', 'example'].includes(word))).toEqual([]);
  });

  it('quote every published figure somewhere', () => {
    const used = new Set(texts.flatMap(([, one]) => quoted(typeof one === 'string' ? one : one.text)));
    expect(Object.keys(publishedFigures).filter((name) => !used.has(name))).toEqual([]);
  });

  it('name the vendor nowhere but in its own', () => {
    const own = groups.filter((group) => group.id !== 'platform').flatMap((group) => group.questions);
    const answers = own
      .filter((question) => question.id !== 'network')
      .flatMap((question) => question.answer.map(plain));
    const told = [...answers, ...pitch.map(plain), ...others, ...parallels.map((one) => one.text)].join('\n');
    expect(told).not.toMatch(new RegExp([vendor.name, ...vendor.names].join('|')));
  });
});

it('the pitch can be said in thirty seconds', () => {
  const said = [...pitch.filter((one) => typeof one === 'string'), pitch[0], vendor.pitch];
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
  const own = pages.filter(({ id, nested }) => !nested && id !== 'guide').map(({ path }) => path);
  expect(explained).toEqual(own);
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

it('there are four takeaways and three parallels, with what does not fit beside them', () => {
  expect(takeaways).toHaveLength(4);
  expect(parallels.map((one) => one.id)).toEqual(['rag', 'system-prompts', 'assistants', 'not']);
});
