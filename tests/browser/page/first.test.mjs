/** The cost of a first visit, and of each second of an open page. */
import { env, eventually, firstTurn, start } from '../booth.mjs';
import { addresses, expect, Page, snapshotsOf, test } from './page.mjs';

const USABLE_WITHIN = env.bench ? 2_000 : 15_000; // on a machine with other load
const BYTES = 330 * 1024;

test('the first page is soon there, and not heavy', async ({ visit }) => {
  const page = await visit({ browser: {} });
  const cdp = await page.context().newCDPSession(page);
  await cdp.send('Network.enable');
  let bytes = 0;
  cdp.on('Network.loadingFinished', ({ encodedDataLength }) => (bytes += encodedDataLength));
  const began = Date.now();
  const booth = await Page.open(page);
  await booth.says(/Stopped/);
  await booth.page.locator('main h2').first().waitFor();
  const took = Date.now() - began;
  const { paint, before } = await page.evaluate(() => {
    const paint = performance.getEntriesByName('first-contentful-paint')[0].startTime;
    const loaded = [...performance.getEntriesByType('resource'), ...performance.getEntriesByType('navigation')];
    const before = loaded.filter((e) => e.responseEnd <= paint).reduce((sum, e) => sum + e.transferSize, 0);
    return { paint, before };
  });
  const kb = (n) => `${(n / 1024).toFixed(0)} kB`;
  console.log(`painted after ${paint.toFixed(0)} ms and ${kb(before)}, usable after ${took} ms and ${kb(bytes)}`);
  expect(took, `${took} ms`).toBeLessThan(USABLE_WITHIN);
  expect(before, `${before} bytes before the first paint`).toBeLessThan(BYTES);
});

const SECONDS = 30; // a page, one snapshot each
const WARM_UP = 5; // while the other pages are fetched
const SHARE = 0.03; // of a core

// A figure for a quiet machine. It means nothing on others.
const bench = env.bench ? test : () => {};

bench('a snapshot a second is cheap, on every page', async ({ visit }) => {
  test.slow(); // half a minute and more for each of a dozen pages
  await start();
  await firstTurn();
  const page = await visit({ browser: { reducedMotion: 'no-preference' } });
  const cdp = await page.context().newCDPSession(page);
  await cdp.send('Performance.enable', { timeDomain: 'threadTicks' });
  const spent = async () =>
    (await cdp.send('Performance.getMetrics')).metrics.find(({ name }) => name === 'TaskDuration').value;
  const sent = snapshotsOf(page);
  const received = async (n) => {
    const before = sent.length;
    await eventually(`${n} snapshots`, () => sent.length >= before + n);
  };
  const shares = {};
  for (const { path, title } of await addresses()) {
    await (await Page.open(page, path)).settled();
    await received(WARM_UP);
    const before = await spent();
    await received(SECONDS);
    shares[title] = (100 * ((await spent()) - before)) / SECONDS;
  }
  const list = Object.entries(shares).map(([title, share]) => `${title} ${share.toFixed(1)} %`);
  console.log(`of a core over ${SECONDS} s: ${list.join(', ')}`);
  expect(
    Object.values(shares).every((share) => share < 100 * SHARE),
    list.join(', ')
  ).toBeTruthy();
});
