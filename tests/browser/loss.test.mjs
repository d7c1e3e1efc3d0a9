/** The screens when a part of the booth exits, and when it has restarted. */
import { killPart, start, startPart, eventually } from './booth.mjs';
import { expect, test } from './journey.mjs';
import { Dashboard, isDash, isNumber } from './pages.mjs';

test(
  'a load generator that dies leaves no old number, and is found again without a reload',
  { tag: '@gate' },
  async ({ visit }) => {
    const page = await visit({ login: 'editor' });
    const booth = await Dashboard.open(page, 'kvbooth-booth');
    await page.evaluate(() => (window.notReloaded = true));
    await start();
    await booth.cardsUntil('a number in every card', isNumber);

    await killPart('loadgen');
    await booth.cardsUntil('a dash in every card', isDash);
    await booth.controls.says(/Load generator lost/);
    await eventually('words of why', async () =>
      /is unreachable|refused|does not respond|does not answer|no answer/i.test(await booth.controls.root.innerText())
    );
    await eventually('a dash in the comparison', async () =>
      /^— lost/.test(await booth.comparison.cell('TTFT', 'Live p50'))
    );
    await expect(booth.controls.button('Start')).toBeDisabled();

    await startPart('loadgen');
    await booth.controls.says(/Stopped/);
    await start();
    await booth.cardsUntil('a number in every card again', isNumber);
    expect(await page.evaluate(() => window.notReloaded)).toBe(true);
  }
);

test('without Prometheus what is live goes on, and the panels that need it say so', async ({ visit }) => {
  const page = await visit({
    height: 1600,
    expected: [/\/api\/(ds\/query|datasources)/, /PanelQueryRunner|fetch error|Bad Gateway|dial tcp|Failed to get/i],
  });
  await start();
  const booth = await Dashboard.open(page, 'kvbooth-booth', '', { refreshes: true });
  await booth.panel('KV hit rate, 60 s').waitFor(); // it comes from Prometheus
  await killPart('prometheus');
  await eventually('a panel fails', async () => (await booth.problems()).length > 0);
  await eventually('live figures', async () => isNumber((await booth.cards())['Requests/s, 60 s']));
  await startPart('prometheus');
  await eventually('no panel fails', async () => (await booth.problems()).length === 0);
});
