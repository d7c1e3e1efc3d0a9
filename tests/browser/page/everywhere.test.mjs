/** Every page, in every size and in both colour schemes, with live data: whole, accessible, and in a picture. */
import { violations } from '../axe.mjs';
import { firstTurn, start } from '../booth.mjs';
import { cuts, lastingCuts, SIZES } from '../layout.mjs';
import { addresses, expect, host, insideGrafana, Page, shoot, test } from './page.mjs';

/** Opens every page in turn and gives what a check finds there, each with the page's title. */
async function onEvery(page, check, concurrency) {
  await start(concurrency);
  await firstTurn();
  const faults = [];
  for (const { path, title } of await addresses()) {
    const booth = await Page.open(page, path);
    await booth.says(/Starting|Settling|Running/);
    await booth.settled();
    await expect(page.getByText('cannot be shown'), title).toHaveCount(0);
    faults.push(...(await check(title, booth)).map((fault) => `${title}: ${fault}`));
  }
  console.log(`${faults.length} faults`);
  expect(faults).toEqual([]);
}

async function pictures(page, ...parts) {
  const name = parts
    .join('-')
    .toLowerCase()
    .replace(/[^a-z0-9-]+/g, '-');
  await shoot(page, name);
  await shoot(page, `${name}-whole`, { whole: true });
}

/** Where each scheme is looked at for accessibility, and in a picture. The colours change no box: the second is measured there and on a phone alone. */
const LOOKED_AT = {
  dark: { at: [1920, 1080], sizes: SIZES },
  light: { at: [1440, 900], sizes: SIZES.filter(([width]) => width < 700) },
};

test('every page, from a phone to a wall, dark and light', async ({ visit }) => {
  const page = await visit({ browser: {} });
  await onEvery(
    page,
    async (title, booth) => {
      const faults = [];
      for (const [colorScheme, { at, sizes }] of Object.entries(LOOKED_AT)) {
        await page.emulateMedia({ colorScheme });
        for (const [width, height] of [...sizes, at]) {
          await page.setViewportSize({ width, height });
          faults.push(...(await lastingCuts(page, 'body')).map((fault) => `${width} px, ${colorScheme}: ${fault}`));
          if (width === 390) {
            await shoot(page, `${title.toLowerCase().replace(/[^a-z]+/g, '-')}-${colorScheme}-phone`, { whole: true });
          }
        }
        await booth.settled();
        faults.push(...(await violations(page, host.ours)).map((fault) => `${colorScheme}: ${fault}`));
        await pictures(page, title, colorScheme, at.join('x'));
      }
      await page.emulateMedia({ colorScheme: 'dark' });
      return faults;
    },
    20
  ); // below the slider's usual range
});

test('every page, 1280×720 light', insideGrafana, async ({ visit }) => {
  const page = await visit({ width: 1280, height: 720, browser: { colorScheme: 'light' } });
  await onEvery(page, async (title) => {
    await pictures(page, title, 'light-1280x720');
    return [...(await violations(page, host.ours)), ...(await cuts(page, host.ours))];
  });
});

test('every page, 1280×720 dark at 200 %', async ({ visit }) => {
  const page = await visit({ width: 640, height: 360, browser: { colorScheme: 'dark', deviceScaleFactor: 2 } });
  await onEvery(page, async () => [...(await violations(page, host.ours)), ...(await cuts(page, host.ours))]);
});
