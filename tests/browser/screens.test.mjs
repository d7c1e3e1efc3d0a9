/**
 * The dashboards and the configuration, from a phone to a wall, in both of Grafana's themes: not cut off, accessible,
 * and in pictures for review.
 */
import { violations } from './axe.mjs';
import { firstTurn, start } from './booth.mjs';
import { expect, picture, test } from './journey.mjs';
import { lastingCuts, SIZES } from './layout.mjs';
import { ConfigPage, Dashboard, isNumber } from './pages.mjs';

/** A phone's and a screen's width, of which pictures are taken, too. */
const PICTURED = [390, 1920];

/**
 * The settings of each theme: a number of conversations below the slider's usual range and one within, and the sizes.
 * The colors change no box, so the second theme is checked only on a screen.
 */
const THEMES = {
  dark: { concurrency: 20, sizes: SIZES },
  light: { concurrency: 90, sizes: SIZES.filter(([width]) => width === 1920) },
};

/** High enough to contain every panel, on a phone one below the other, because others load nothing. */
const heightOf = (width) => (width < 768 ? 10_000 : 3200);

/** Returns what is cut in a dashboard, in each size, each with the size. A check runs in each of the sizes, too. */
async function cutsOf(dashboard, name, sizes, check) {
  const { page } = dashboard;
  const faults = [];
  for (const [width, height] of sizes) {
    await page.setViewportSize({ width, height: heightOf(width) });
    await dashboard.settle();
    faults.push(...(await lastingCuts(page, 'main')).map((fault) => `${name}, ${width} px: ${fault}`));
    if (PICTURED.includes(width)) {
      await picture(page, `${name}-${width}-whole`);
      await page.setViewportSize({ width, height });
      await picture(page, `${name}-${width}x${height}`);
    }
    await check?.([width, height]);
  }
  return faults;
}

/** A laptop shows the whole comparison of latencies, with Grafana's menu beside it. */
async function fits({ page, comparison }, [width, height]) {
  if (width === 1440) {
    await page.setViewportSize({ width, height });
    const latency = await comparison.root.getByRole('row', { name: /^End-to-end \d|^End-to-end —/ }).boundingBox();
    expect(latency.y + latency.height).toBeLessThanOrEqual(height);
  }
}

for (const [theme, { concurrency, sizes }] of Object.entries(THEMES)) {
  test(`the dashboards are whole and accessible, ${theme}`, async ({ visit }) => {
    await start(concurrency);
    await firstTurn();
    const page = await visit({ login: 'admin' });
    const booth = await Dashboard.open(page, 'kvbooth-booth', `?theme=${theme}&from=now-5m`);
    await booth.cardsUntil('a number in every card', isNumber);
    await booth.controls.button('Traffic').click();
    const ours = ['section[aria-label="Workload controls"]', 'section[aria-label="Live against baseline"]'];
    expect(await violations(page, ...ours)).toEqual([]);
    await booth.controls.button('Traffic').click();

    const faults = await cutsOf(booth, `booth-${theme}`, sizes, (size) => fits(booth, size));
    const demo = await Dashboard.open(page, 'gtc-demo', `?theme=${theme}&from=now-5m`);
    faults.push(...(await cutsOf(demo, `gtc-demo-${theme}`, sizes)));
    expect(faults).toEqual([]);
  });

  test(`the configuration is accessible, ${theme}`, async ({ visit }) => {
    const page = await visit({ login: 'admin' });
    const config = await ConfigPage.open(page, theme);
    await config.loadgen.waitFor();
    await config.test();
    expect(await violations(page, 'form[aria-label="Connection"]', 'form[aria-label="Load generator"]')).toEqual([]);
    for (const [width, height] of [
      [1920, 1080],
      [1280, 720],
    ]) {
      await page.setViewportSize({ width, height });
      for (const [name, form] of [
        ['config', config.connection],
        ['config-lower', config.loadgen],
      ]) {
        await form.evaluate((element) => element.scrollIntoView());
        await picture(page, `${name}-${theme}-${width}x${height}`);
      }
    }
  });
}
