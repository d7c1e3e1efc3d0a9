/** What is seen when a part of the booth dies, and when it comes back. */
import { killPart, start, startPart, until } from './booth.mjs';
import { expect, test } from './journey.mjs';
import { Dashboard, isDash, isNumber } from './pages.mjs';

const seconds = (since) => `${((Date.now() - since) / 1000).toFixed(1)} s`;

test('a load generator that dies leaves no old number, and is found again without a reload', async ({ visit }) => {
  const page = await visit({ login: 'editor' });
  const booth = await Dashboard.open(page, 'kvbooth-booth');
  await page.evaluate(() => (window.notReloaded = true));
  await start();
  await booth.cardsUntil('a number in every card', isNumber);

  const killed = Date.now();
  await killPart('loadgen');
  await Promise.all([
    booth
      .cardsUntil('a dash in every card', isDash)
      .then(() => console.log(`dashes ${seconds(killed)} after the loss`)),
    booth.controls.says(/Load generator lost/).then(() => console.log(`told ${seconds(killed)} after the loss`)),
  ]);
  await until('words of why', async () =>
    /is unreachable|refused|does not respond|does not answer|no answer/i.test(await booth.controls.root.innerText())
  );
  await until('a dash in the comparison', async () => /^— lost/.test(await booth.comparison.cell('TTFT', 'Live p50')));
  await expect(booth.controls.button('Start')).toBeDisabled();

  await startPart('loadgen');
  const ready = Date.now();
  await booth.controls.says(/Stopped/);
  console.log(`back ${seconds(ready)} after its readiness`);
  await start();
  await booth.cardsUntil('a number in every card again', isNumber);
  expect(await page.evaluate(() => window.notReloaded)).toBe(true);
});

test('without Prometheus what is live goes on, and the panels that need it say so', async ({ visit }) => {
  const page = await visit({
    height: 1600,
    expected: [/\/api\/(ds\/query|datasources)/, /PanelQueryRunner|fetch error|Bad Gateway|dial tcp|Failed to get/i],
  });
  await start();
  const booth = await Dashboard.open(page, 'kvbooth-booth', '', { refreshes: true });
  await booth.panel('KV cache hit rate (last 60 s)').waitFor(); // Prometheus is asked for it
  await killPart('prometheus');
  await until('a panel fails', async () => (await booth.problems()).length > 0);
  await until('live figures', async () => isNumber((await booth.cards())['RPS, 60 s']));
  await startPart('prometheus');
  await until('no panel fails', async () => (await booth.problems()).length === 0);
});
