/** Two routers side by side: figures of both, one conversation on both at once, on a phone and on the stage, too. */
import { violations } from '../axe.mjs';
import { eventually } from '../booth.mjs';
import { lastingCuts, smallTexts } from '../layout.mjs';
import { ask, expect, gate, host, Page, section, test, twin } from './page.mjs';

const current = async () => (await ask(twin, 'GET', '/api/v1/twin')).showcase;

test('both routers, and a showcase that grows on both sides', gate, async ({ visit }) => {
  await ask(twin, 'POST', '/api/v1/workload/start', { concurrency: 12 });
  try {
    const booth = await Page.open(await visit({ width: 1440, height: 900, browser: {} }), '/side-by-side', twin);
    const { page } = booth;
    for (const lane of ['main', 'twin']) {
      await expect(page.getByTestId(`${lane} TTFT p95`)).toHaveText(/\d ms/);
      await expect(page.getByRole('region', { name: `Workers of ${lane}` })).toBeVisible();
    }
    // A visitor presses a key, types nothing, and reads which is first, and by how much.
    await page.keyboard.press('c');
    const showcase = section(page, 'Showcase');
    const texts = showcase.getByRole('group', { name: /^Text of / });
    await expect(showcase.getByText(/ was first, by [\d.,]+ ms/)).toBeVisible();
    const lengths = async () => (await texts.allInnerTexts()).map((text) => text.length);
    await eventually('text on both sides', async () => (await lengths()).every((length) => length > 40));
    await eventually('the first turn among those that have ended', async () => (await current()).results.length > 0);
    await showcase.getByRole('row', { name: /^1 [\d.,]+ ms [\d.,]+ ms KV-aware \((main|twin)\), by/ }).waitFor();
    expect(await violations(page, host.ours)).toEqual([]);

    // From the first pair on there is a difference that the clusters themselves could cause.
    const caution = section(page, 'Both routers now').getByText(
      'Whether the two clusters are equal has not been checked'
    );
    await expect(caution).toBeVisible({ timeout: 120_000 });

    await page.setViewportSize({ width: 390, height: 844 });
    expect(await lastingCuts(page, host.ours)).toEqual([]);

    await page.setViewportSize({ width: 1920, height: 1080 });
    await page.keyboard.press('s');
    // The stage opens with both routers; its key shows one, and both again.
    const both = (pressed) => page.getByRole('button', { name: 'Side by side', pressed }).waitFor();
    await both(true);
    await page.keyboard.press('t');
    await both(false);
    await page.keyboard.press('t');
    await both(true);
    await page.getByRole('region', { name: 'Lane twin' }).waitFor();
    expect(await booth.overflow()).toBe(0);
    expect(await page.evaluate(() => document.scrollingElement.scrollHeight - window.innerHeight)).toBeLessThan(1);
    expect(await smallTexts(page, host.ours, 24)).toEqual([]);
    await page.keyboard.press('Escape');
    await showcase.getByRole('button', { name: /End the showcase|Another showcase/ }).waitFor();
  } finally {
    if ((await current())?.state === 'running') {
      await ask(twin, 'DELETE', '/api/v1/twin/showcase');
    }
    await ask(twin, 'POST', '/api/v1/workload/stop', { drain: false });
  }
});
