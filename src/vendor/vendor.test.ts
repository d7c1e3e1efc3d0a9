/** @jest-environment node */
import { NEUTRAL, vendors, type Vendor, type VendorName } from '.';
import digitalocean from './digitalocean.json';
import { mistakes } from '../test/vendorMistakes';

/** Returns a copy of a file with a change. */
function changed(change: (file: Vendor) => void): unknown {
  const copy: Vendor = JSON.parse(JSON.stringify(digitalocean));
  change(copy);
  return copy;
}

const names = Object.keys(vendors) as VendorName[];

describe('the vendor files', () => {
  it.each(names)('%s has no mistake', async (name) => {
    expect(mistakes(await vendors[name]())).toEqual([]);
  });

  it.each(names.filter((name) => name !== NEUTRAL))('neutral names nothing of %s', async (name) => {
    const neutral = JSON.stringify(await vendors[NEUTRAL]());
    const other = await vendors[name]();
    const theirs = [other.name, ...other.names, ...other.terms.map(({ term }) => term)];
    expect(theirs.filter((one) => neutral.includes(one))).toEqual([]);
  });

  it('neutral names no cloud and no maker, and uses no figure of one', async () => {
    const neutral = await vendors[NEUTRAL]();
    expect(JSON.stringify(neutral)).not.toMatch(
      /NVIDIA|Dynamo|Grove|\bKAI\b|TensorRT|vLLM|SGLang|AWS|Amazon|Google|Azure|\bAMD\b|Intel\b|Droplet|GTC/
    );
    expect(neutral.claims).toEqual([]);
  });
});

describe('a mistake is reported by name', () => {
  it.each<[string, (file: Vendor) => void, string]>([
    ['a missing text', (f) => delete (f as Partial<Vendor>).pitch, 'pitch: must be a non-empty string'],
    [
      'an empty text deep inside',
      (f) => (f.platform.groups[1].items[0].title = ' '),
      'platform.groups[storage].items[share].title: must be a non-empty string',
    ],
    ['a field that is not known', (f) => Object.assign(f.platform, { color: 'blue' }), 'platform.color: unknown field'],
    ['a list that is none', (f) => Object.assign(f.story, { parts: 'once' }), 'story.parts: must be a non-empty list'],
    ['an id twice', (f) => f.story.parts.push(f.story.parts[0]), 'story.parts: “kubernetes” is there twice'],
    [
      'an address without https',
      (f) => (f.links[0].url = 'www.example.org'),
      'links[gpu-prices].url: must be an https URL',
    ],
    [
      'a source without an address',
      (f) => delete (f.sources[0] as Partial<Vendor['sources'][number]>).url,
      'sources[h200].url: must be an https URL',
    ],
    [
      'a source that is not there',
      (f) => (f.claims[0].source = 'hearsay'),
      'claims[doks-sla].source: there is no source “hearsay”',
    ],
    [
      'a link that is not there',
      (f) => f.questions[0].links.push('shop'),
      'questions[gpus-since].links: there is no link “shop”',
    ],
    [
      'a claim of no date',
      (f) => (f.claims[0].date = 'soon'),
      'claims[doks-sla].date: must be a year, or a year with month, or a day, such as 2026-03',
    ],
    ['a claim that is not there', (f) => (f.pitch = 'Up to {claim.fast}'), 'texts: there is no claim “fast”'],
    [
      'a claim that no text quotes',
      (f) => f.claims.push({ id: 'spare', value: '1', date: '2026' }),
      'claims[spare]: no text quotes it',
    ],
    [
      'a figure typed into an answer',
      (f) => f.questions[1].answer.push('It costs 5 a day.'),
      'questions[gpus-price].answer[3]: has a figure without a source; make it a claim, or add the name to names',
    ],
    ['an answer left out', (f) => f.questions.splice(4, 1), 'questions: there is no answer to “shared-storage”'],
  ])('%s', (_, change, mistake) => {
    expect(mistakes(changed(change))).toEqual([mistake]);
  });

  it('a file that is no object is reported', () => {
    expect(mistakes([])).toEqual([': must be an object']);
  });
});
