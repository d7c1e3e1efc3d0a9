/**
 * Every figure of a lane, its workers, its turns and its recorded results, on every page and on the dashboard KV Booth:
 * none differs from what the API said at that moment, beyond its rounding.
 */
import { call, eventually, firstTurn, start } from './booth.mjs';
import { collect, compare } from './figures.mjs';
import { expect, test } from './journey.mjs';
import { Dashboard } from './pages.mjs';
import { host, registered } from './page/page.mjs';

test.setTimeout(15 * 60_000);

/** How old a shown figure may be, in milliseconds: a snapshot a second, and the time to draw it; and in Prometheus. */
const AGE = 3000;
const SCRAPED = 20_000;

/** How often the API is asked, in milliseconds, and how many answers are kept. */
const SAMPLED = 200;
const KEPT = 150;

/** Keeps what the API says, several times a second. */
class Moments {
  #kept = [];
  #ends = false;

  constructor() {
    this.done = this.#sample();
  }

  async #sample() {
    while (!this.#ends) {
      const snapshot = await call('GET', '/api/v1/snapshot');
      this.#kept = [...this.#kept, { at: Date.now(), snapshot }].slice(-KEPT);
      await new Promise((resolve) => setTimeout(resolve, SAMPLED));
    }
  }

  /** The moments between a time before another one and shortly after that. */
  async around(time, age) {
    await eventually('a moment after it', () => this.#kept.at(-1)?.at > time + 1000);
    return this.#kept.filter(({ at }) => at > time - age && at < time + 1500);
  }

  end() {
    this.#ends = true;
    return this.done;
  }
}

/** The time that a page has to show all that it reads after its first text, in milliseconds. */
const COMPLETE = 4000;

/** Waits until a page has had texts for that time. */
async function complete(page, path) {
  let first;
  await eventually(`${path || '/'} is complete`, async () => {
    first ??= (await page.evaluate(collect)).length > 0 ? Date.now() : undefined;
    return Date.now() - first > COMPLETE;
  });
}

test('no figure differs from the API', async ({ visit }) => {
  const { baselines } = await call('GET', '/api/v1/baselines');
  await start();
  await firstTurn();
  const settled = async () => !(await call('GET', '/api/v1/snapshot')).lanes[0].baseline.settling;
  await eventually('the step has settled', settled, { within: 5 * 60_000 });
  const moments = new Moments();
  const differ = [];
  const agree = [];
  const read = async (page, where, age) => {
    const time = Date.now();
    const texts = await page.evaluate(collect);
    const found = compare(texts, await moments.around(time, age), baselines);
    console.log(`${where}: ${found.agree.length} texts agree, ${found.differ.length} differ, of ${texts.length}`);
    differ.push(...found.differ.map((one) => ({ where, ...one })));
    agree.push(...found.agree);
  };
  const page = await visit({ login: 'editor', width: 1920, height: 1080 });
  for (const { path, nested } of registered.filter(({ twin }) => !twin)) {
    if (!nested) {
      await page.goto(host.address(page, `/${path}`), { waitUntil: 'domcontentloaded' });
      await complete(page, path);
      await read(page, `the page ${path || '/'}`, AGE);
    }
  }
  await page.setViewportSize({ width: 1920, height: 3000 });
  const booth = await Dashboard.open(page, 'kvbooth-booth', '?from=now-5m', { refreshes: true });
  await booth.settle();
  await read(page, 'the dashboard KV Booth', SCRAPED);
  await moments.end();
  const said = differ.map(
    ({ where, place, text, off }) => `${where}: ${[...place, text].join(' | ')}: ${JSON.stringify(off)}`
  );
  expect(said).toEqual([]);
  expect(agree.length).toBeGreaterThan(100);
});
