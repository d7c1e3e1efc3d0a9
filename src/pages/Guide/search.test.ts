/** @jest-environment node */
import digitalocean from '../../vendor/digitalocean.json';
import { contentOf } from './content';
import { likelyFirst, matches, search } from './search';

const {
  groups,
  glossary: { parts: glossary },
} = contentOf(digitalocean);

const ids = (query: string) =>
  search(query, groups, glossary).groups.flatMap((group) => group.questions.map((q) => q.id));
const terms = (query: string) => search(query, groups, glossary).terms.map((term) => term.id);

describe('the search', () => {
  it('without a query finds all', () => {
    const all = search('', groups, glossary);
    expect(all.questions).toBe(20);
    expect(all.terms).toHaveLength(glossary.length);
  });

  it('covers questions, answers and search words', () => {
    expect(ids('slos do you')).toContain('slos'); // the question
    expect(ids('targets')).toContain('slos'); // a search word
    expect(ids('pods by role')).toEqual(['grove']); // the answer
    expect(ids('gang')).toEqual(['grove']); // a search word
    expect(terms('speculative')).toEqual(['draft-model', 'eagle3', 'speculation']);
  });

  it('requires every word, in any order and case, with accents or without', () => {
    expect(ids('FP8 tensorrt')).toEqual(['model']);
    expect(ids('TENSORRT  fp8')).toEqual(['model']);
    expect(matches('senor', 'Señor')).toBe(true);
    expect(matches('señor', 'SENOR')).toBe(true);
  });

  it('does not match placeholders', () => {
    expect(ids('live.ttft.p95')).toEqual([]);
  });

  it('leaves out groups without a match, and counts', () => {
    const found = search('podclique', groups, glossary);
    expect(found.groups.map((group) => group.id)).toEqual(['technical']);
    expect(found.questions).toBe(1);
    expect(search('zebra', groups, glossary)).toEqual({ groups: [], terms: [], questions: 0 });
  });
});

it('likely questions come first, the rest stays in order', () => {
  const order = likelyFirst(groups[0].questions, ['slos', 'crossover']).map((question) => question.id);
  expect(order).toEqual(['crossover', 'slos', 'running', 'rps-low', 'disaggregated', 'model', 'benchmarks']);
});
