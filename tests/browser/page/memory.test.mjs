/**
 * The memory that a tab keeps of its snapshots: of an hour of them in seconds, or of eight hours where BENCH is set.
 */
import { env, eventually } from '../booth.mjs';
import { expect, Page, registered, replay, test } from './page.mjs';

const HOURS = env.bench ? 8 : 1;
const SNAPSHOTS = HOURS * 60 * 60; // one a second
const WARM_UP = env.bench ? 600 : 300; // for each page
const GROWTH = HOURS * 2.5 * 2 ** 20; // bytes

test('hours of snapshots leave nothing behind', async ({ visit }) => {
  const page = await visit({ browser: {} });
  const booth = await Page.open(page, '/', replay);
  await booth.settled();
  const cdp = await page.context().newCDPSession(page);
  const pages = registered.filter(({ nested, twin }) => !nested && !twin);
  let played = 0;
  const playOnAll = async (n) => {
    for (const { title, bare } of pages) {
      await page.getByRole('navigation').getByRole('link', { name: title }).click();
      await booth.settled();
      await play(page, n, (played += n));
      if (bare) {
        await page.keyboard.press('Escape'); // it has no navigation
      }
    }
    await page.getByRole('navigation').getByRole('link', { name: pages[0].title }).click();
    await booth.settled();
  };
  await playOnAll(WARM_UP);
  const before = await heap(cdp);
  const began = Date.now();
  await playOnAll(Math.ceil(SNAPSHOTS / pages.length));
  const growth = (await heap(cdp)) - before;
  const mb = (bytes) => (bytes / 2 ** 20).toFixed(1);
  const took = ((Date.now() - began) / 1000).toFixed(0);
  console.log(`${SNAPSHOTS} snapshots in ${took} s: ${mb(before)} MB, and ${mb(growth)} MB more`);
  expect(growth, `${mb(growth)} MB more`).toBeLessThan(GROWTH);
});

/** Sends this number of snapshots, and waits until the page has shown the last of them. */
async function play(page, n, total) {
  const answer = await fetch(`${replay}/replay?n=${n}&title=Played ${total}`, { method: 'POST' });
  expect(answer.status).toBe(200);
  const shown = async () => (await page.title()).endsWith(` Played ${total}`);
  await eventually(`the last of ${n} snapshots`, shown, { within: 180_000 });
}

/** The memory of the tab's scripts after a garbage collection, in bytes. */
async function heap(cdp) {
  for (let i = 0; i < 3; i++) {
    await cdp.send('HeapProfiler.collectGarbage');
  }
  return (await cdp.send('Runtime.getHeapUsage')).usedSize;
}
