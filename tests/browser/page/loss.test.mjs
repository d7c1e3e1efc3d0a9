/** The page when the load generator, which also serves it, exits and restarts. */
import { firstTurn, killPart, start, startPart, eventually } from '../booth.mjs';
import { expect, gate, gone, Page, test } from './page.mjs';

test('a load generator that exits is reported, and is found again without a reload', gate, async ({ visit }) => {
  const page = await visit({ browser: {}, expected: gone });
  const guide = scriptsWith(page, 'Thirty seconds');
  const booth = await Page.open(page);
  await page.evaluate(() => (window.notReloaded = true));
  await start();
  await firstTurn();
  await guide;
  await booth.says(/Starting|Settling|Running/);
  await eventually('a live figure', async () => /\d/.test(await liveCell(page)));

  await killPart('loadgen');
  await booth.says(/Load generator lost/);
  await page.getByText('The load generator is unreachable', { exact: true }).waitFor();
  await expect(page.getByRole('region', { name: 'Result' })).toContainText(/^Load generator lost since \d\d:\d\d:\d\d/);
  expect(await liveCell(page), 'no old number as live').toMatch(/^—/);
  await expect(booth.button('Start')).toBeDisabled();
  await expect(booth.button('Stop')).toBeDisabled();

  await page.getByRole('link', { name: 'Presenter’s guide' }).click();
  await page.locator('main h2').first().waitFor(); // the page's code is loaded before it is opened
  await startPart('loadgen');
  await booth.says(/Stopped/);
  await expect(booth.button('Start')).toBeEnabled();
  expect(await page.evaluate(() => window.notReloaded)).toBe(true);
});

/** Resolves once a script with this text has arrived, and those requested together with it. */
async function scriptsWith(page, words) {
  const open = new Set();
  const isScript = (request) => request.resourceType() === 'script';
  page.on('request', (request) => isScript(request) && open.add(request));
  page.on('requestfinished', (request) => open.delete(request));
  await page.waitForResponse(
    async (response) => isScript(response.request()) && (await response.text()).includes(words)
  );
  await eventually('no script is under way', () => open.size === 0);
}

/** The live median of the time to first token. */
async function liveCell(page) {
  return (await page.getByRole('row', { name: /^TTFT/ }).first().getByRole('cell').first().innerText()).trim();
}
