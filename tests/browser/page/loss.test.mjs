/** What is seen when the load generator dies, which serves the page too, and when it comes back. */
import { firstTurn, killPart, start, startPart, until } from '../booth.mjs';
import { expect, test } from '../journey.mjs';
import { gone, Page } from './page.mjs';

const seconds = (since) => `${((Date.now() - since) / 1000).toFixed(1)} s`;

test('a load generator that dies is told, and is found again without a reload', async ({ visit }) => {
  const page = await visit({ browser: {}, expected: gone });
  const guide = scriptsWith(page, 'Thirty seconds');
  const booth = await Page.open(page);
  await page.evaluate(() => (window.notReloaded = true));
  await start();
  await firstTurn();
  await guide;
  await booth.says(/Starting|Settling|Running/);
  await until('a live figure', async () => /\d/.test(await liveCell(page)));

  const killed = Date.now();
  await killPart('loadgen');
  await booth.says(/Load generator lost/);
  console.log(`told ${seconds(killed)} after the loss`);
  await page.getByText('The load generator is unreachable').waitFor();
  expect(await liveCell(page), 'no old number as live').toMatch(/^—/);
  await expect(booth.button('Start')).toBeDisabled();
  await expect(booth.button('Stop')).toBeDisabled();

  await page.getByRole('link', { name: 'Presenter’s guide' }).click();
  await page.locator('main h2').first().waitFor(); // what a page needs is there before it is opened
  await startPart('loadgen');
  const ready = Date.now();
  await booth.says(/Stopped/);
  console.log(`back ${seconds(ready)} after its readiness`);
  await expect(booth.button('Start')).toBeEnabled();
  expect(await page.evaluate(() => window.notReloaded)).toBe(true);
});

/** Resolves once a script with these words has come, and those that were asked for together with it. */
async function scriptsWith(page, words) {
  const open = new Set();
  const isScript = (request) => request.resourceType() === 'script';
  page.on('request', (request) => isScript(request) && open.add(request));
  page.on('requestfinished', (request) => open.delete(request));
  await page.waitForResponse(
    async (response) => isScript(response.request()) && (await response.text()).includes(words)
  );
  await until('no script is under way', () => open.size === 0);
}

/** The live median of the time to first token. */
async function liveCell(page) {
  return (await page.getByRole('row', { name: /^TTFT/ }).first().getByRole('cell').first().innerText()).trim();
}
