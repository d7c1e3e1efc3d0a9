/** Every page with live data, in both color schemes: accessible and, in every size, not cut off and in a picture. */
import { violations } from '../axe.mjs';
import { firstTurn, start } from '../booth.mjs';
import { cuts, lastingCuts, SIZES } from '../layout.mjs';
import { addresses, expect, gate, host, Page, shoot, test } from './page.mjs';

/** Opens every page in turn and returns the results of a check there, each with the page's title. */
async function onEvery(page, check, concurrency) {
  await start(concurrency);
  await firstTurn();
  const faults = [];
  for (const [i, { path, title, bare }] of (await addresses()).entries()) {
    const booth = i === 0 ? await Page.open(page, path) : await Page.within(page, path);
    await booth.says(/Starting|Settling|Running/);
    await booth.settled();
    await expect(page.getByText('failed to load'), title).toHaveCount(0);
    faults.push(...(await check(title, booth, bare)).map((fault) => `${title}: ${fault}`));
  }
  expect(faults).toEqual([]);
}

/** Takes a picture of a whole page. */
function pictures(page, ...parts) {
  const name = parts
    .join('-')
    .toLowerCase()
    .replace(/[^a-z0-9-]+/g, '-');
  return shoot(page, `${name}-whole`, { whole: true });
}

/** A window of 1280×720 at a zoom of 200 %, in CSS pixels. */
const ZOOMED = { width: 640, height: 360, deviceScaleFactor: 2, mobile: false };

/** Loads a page in a zoomed window, which stays until the next size, and runs a check there. */
async function zoomed(booth, check) {
  const { page } = booth;
  const session = await page.context().newCDPSession(page);
  await session.send('Emulation.setDeviceMetricsOverride', ZOOMED);
  await page.reload({ waitUntil: 'domcontentloaded' });
  await booth.says(/Starting|Settling|Running/);
  await booth.settled();
  expect(await page.evaluate(() => [innerWidth, devicePixelRatio])).toEqual([640, 2]);
  const faults = await check();
  await session.detach();
  return faults.map((fault) => `at 200 %: ${fault}`);
}

test('every page is accessible, and its header judges the load generator', gate, async ({ visit }) => {
  const page = await visit({ browser: {} });
  const verdict = page
    .locator('header')
    .getByText(/^Load generator (self-check running$|error (negligible|noticeable|too large))/);
  await onEvery(page, async (title, _booth, bare) => {
    await expect(verdict, title).toHaveCount(bare ? 0 : 1);
    return violations(page, host.ours);
  });
});

test('every page, from a phone to a wall and at 200 %, dark and light', async ({ visit }) => {
  test.slow(); // a minute and a half on an idle machine
  const page = await visit({ browser: {} });
  await onEvery(
    page,
    async (title, booth) => {
      const faults = [];
      const measure = async (colorScheme, [width, height]) => {
        await page.setViewportSize({ width, height });
        faults.push(...(await lastingCuts(page, 'body')).map((fault) => `${width} px, ${colorScheme}: ${fault}`));
      };

      await pictures(page, title, 'dark-1920x1080');
      for (const size of SIZES) {
        await measure('dark', size);
      }
      // The colors change no box, so the second scheme is measured only on a phone.
      await page.emulateMedia({ colorScheme: 'light' });
      await measure('light', SIZES[0]);
      await pictures(page, title, 'light-phone');
      await measure('light', [1440, 900]);
      await page.emulateMedia({ colorScheme: 'dark' });
      faults.push(
        ...(await zoomed(booth, async () => [
          ...(await violations(page, host.ours)),
          ...(await lastingCuts(page, host.ours)),
        ]))
      );
      await page.setViewportSize({ width: 1920, height: 1080 });
      return faults;
    },
    20 // below the slider's usual range
  );
});

test('every page, 1280×720 light', { tag: '@inside' }, async ({ visit }) => {
  const page = await visit({ width: 1280, height: 720, browser: { colorScheme: 'light' } });
  await onEvery(page, async (title) => {
    await pictures(page, title, 'light-1280x720');
    return [...(await violations(page, host.ours)), ...(await cuts(page, host.ours))];
  });
});
