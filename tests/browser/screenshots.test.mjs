/** Pictures for people to look at. */
import fs from 'node:fs/promises';
import path from 'node:path';

import { env, firstTurn, start, until } from './booth.mjs';
import { expect, test } from './journey.mjs';
import { ConfigPage, Dashboard, isNumber } from './pages.mjs';

const SIZES = [
  [1920, 1080],
  [1280, 720],
];

/** Takes a picture in each size. */
async function picture(page, name, settle = () => {}) {
  await fs.mkdir(env.results, { recursive: true });
  for (const [width, height] of SIZES) {
    await page.setViewportSize({ width, height });
    await until('the icons are there', () => page.evaluate(() => document.fonts.ready.then(() => true)));
    await settle();
    await page.screenshot({ path: path.join(env.results, `${name}-${width}x${height}.png`) });
  }
}

for (const theme of ['dark', 'light']) {
  test(`pictures, ${theme}`, async ({ visit }) => {
    await start(90);
    await firstTurn();
    const page = await visit({ login: 'admin' });
    const booth = await Dashboard.open(page, 'kvbooth-booth', `?theme=${theme}`);
    await booth.cardsUntil('a number in every card', isNumber);
    await picture(page, `booth-${theme}`, async () => {
      await booth.settle();
      await until('nothing of our panels is cut off', async () => expect(await booth.cutOff()).toEqual([]) ?? true);
    });
    const demo = await Dashboard.open(page, 'gtc-demo', `?theme=${theme}&from=now-5m`);
    await picture(page, `gtc-demo-${theme}`, () => demo.settle());
    const config = await ConfigPage.open(page, theme);
    await config.loadgen.waitFor();
    await config.test();
    const scrollTo = (form) => form.evaluate((element) => element.scrollIntoView());
    await picture(page, `config-${theme}`, () => scrollTo(config.connection));
    await picture(page, `config-lower-${theme}`, () => scrollTo(config.loadgen));
  });
}
