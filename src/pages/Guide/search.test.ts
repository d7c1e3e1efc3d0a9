/** @jest-environment node */
import digitalocean from '../../vendor/digitalocean.json';
import { chaptersOf } from './content';
import { countEntries, search } from './search';

const chapters = chaptersOf(digitalocean);

/** The addresses of the entries found, by their chapter. */
const found = (query: string) =>
  Object.fromEntries(search(query, chapters).map(({ id, parts }) => [id, parts.map((part) => part.id)]));

describe('the search', () => {
  it('covers titles, texts, search words and chapters without entries', () => {
    expect(found('slos do you').questions).toEqual(['question-slos']); // the title
    expect(found('latency targets')).toEqual({ questions: ['question-slos'] }); // a search word
    expect(found('pods by role')).toEqual({ technical: ['question-grove'] }); // the answer
    expect(found('recomputes what its neighbor')).toEqual({ pitch: [] });
  });

  it('requires every word, in any order and case, with accents or without', () => {
    expect(found('TENSORRT  fp8').questions).toEqual(['question-model']);
    expect(found('podclíques')).toEqual(found('PodCliques'));
  });

  it('shows of an entry the parts that match', () => {
    const [screens] = search('prefix tree and loop', chapters);
    expect(screens.parts.map(({ id, parts }) => [id, parts.map(({ title }) => title)])).toEqual([
      ['screen-kv-routing', ['Prefix tree and loop']],
    ]);
  });

  it('does not match names of figures, and counts', () => {
    expect(found('live.ttft.p95')).toEqual({});
    expect(countEntries(search('podcliques by role', chapters))).toBe(1);
    expect(countEntries(search('', chapters))).toBe(countEntries(chapters));
  });
});
