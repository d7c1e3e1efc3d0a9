/** Nothing of the dashboards is cut off, from a phone to a wall, in both of Grafana's themes. */
import { firstTurn, start, until } from './booth.mjs';
import { expect, picture, test } from './journey.mjs';
import { lastingCuts, SIZES } from './layout.mjs';
import { Dashboard } from './pages.mjs';

/** Sizes of which a picture is taken. */
const PICTURED = [390, 1440];

/** Grafana's themes with the sizes that each is measured in. The colours change no box: the second is measured where pictures are taken. */
const THEMES = { dark: SIZES, light: SIZES.filter(([width]) => PICTURED.includes(width)) };

/** High enough for every panel to be in sight, on a phone one below the other: those out of it load nothing. */
const heightOf = (width) => (width < 768 ? 7000 : 3200);

/** Changes Grafana's theme until the page is loaded anew, by the keys that Grafana has for it. */
async function changeTheme(page) {
  const background = () => page.evaluate(() => getComputedStyle(document.body).backgroundColor);
  const before = await background();
  await page.keyboard.press('c');
  await page.keyboard.press('r');
  await until('other colours', async () => (await background()) !== before);
}

for (const uid of ['kvbooth-booth', 'gtc-demo']) {
  test(`${uid} is whole, from a phone to a wall, dark and light`, async ({ visit }) => {
    await start(20);
    await firstTurn();
    const page = await visit({ login: 'admin' });
    const dashboard = await Dashboard.open(page, uid, '?theme=dark&from=now-5m');
    const faults = [];
    for (const [theme, sizes] of Object.entries(THEMES)) {
      for (const [width, height] of sizes) {
        await page.setViewportSize({ width, height: heightOf(width) });
        await dashboard.settle();
        const found = await lastingCuts(page, 'main');
        faults.push(...found.map((fault) => `${width} px, ${theme}: ${fault}`));
        if (PICTURED.includes(width)) {
          await picture(page, `cut-${uid}-${theme}-${width}-whole`);
          await page.setViewportSize({ width, height });
          await picture(page, `cut-${uid}-${theme}-${width}`);
        }
        if (uid === 'kvbooth-booth' && width === 1440) {
          // A laptop shows the whole comparison of latencies, with Grafana's menu beside it.
          const latency = await dashboard.comparison.root
            .getByRole('row', { name: /^Latency \d|^Latency —/ })
            .boundingBox();
          expect(latency.y + latency.height).toBeLessThanOrEqual(height);
        }
      }
      await changeTheme(page);
    }
    expect(faults).toEqual([]);
  });
}
