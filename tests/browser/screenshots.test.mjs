/** Pictures for people to look at. */
import { firstTurn, start, until } from './booth.mjs';
import { picture, test } from './journey.mjs';
import { ConfigPage, Dashboard, isNumber } from './pages.mjs';

const SIZES = [
  [1920, 1080],
  [1280, 720],
];

/** Takes a picture in each size. */
async function inEachSize(page, name, settle = () => {}) {
  for (const [width, height] of SIZES) {
    await page.setViewportSize({ width, height });
    await until('the icons are there', () => page.evaluate(() => document.fonts.ready.then(() => true)));
    await settle();
    await picture(page, `${name}-${width}x${height}`);
  }
}

for (const theme of ['dark', 'light']) {
  test(`pictures, ${theme}`, async ({ visit }) => {
    await start(90);
    await firstTurn();
    const page = await visit({ login: 'admin' });
    const booth = await Dashboard.open(page, 'kvbooth-booth', `?theme=${theme}`);
    await booth.cardsUntil('a number in every card', isNumber);
    await inEachSize(page, `booth-${theme}`, () => booth.settle());
    const demo = await Dashboard.open(page, 'gtc-demo', `?theme=${theme}&from=now-5m`);
    await inEachSize(page, `gtc-demo-${theme}`, () => demo.settle());
    const config = await ConfigPage.open(page, theme);
    await config.loadgen.waitFor();
    await config.test();
    const scrollTo = (form) => form.evaluate((element) => element.scrollIntoView());
    await inEachSize(page, `config-${theme}`, () => scrollTo(config.connection));
    await inEachSize(page, `config-lower-${theme}`, () => scrollTo(config.loadgen));
  });
}
