/** The two dashboards, before and after Start. */
import { env, firstTurn, start, until } from './booth.mjs';
import { expect, test } from './journey.mjs';
import { Dashboard, isDash, isNumber } from './pages.mjs';

/** High enough for every panel of a dashboard to be in sight: those out of it load nothing. */
const WHOLE = { height: 3600 };

test('the app is enabled by its provisioning, and brings both dashboards', async ({ visit }) => {
  const page = await visit({ login: 'admin' });
  const ask = async (path) => (await page.context().request.get(env.grafana + path)).json();
  const settings = await ask('/api/plugins/kvbooth-inference-app/settings');
  expect(settings.enabled).toBe(true);
  expect(settings.jsonData.sidecarUrl).toBe(env.loadgen);
  const found = await ask('/api/search?type=dash-db');
  expect(found.map(({ uid }) => uid).sort()).toEqual(['gtc-demo', 'kvbooth-booth']);
});

test('booth: a dash in every card before Start, a number in each after the first turn', async ({ visit }) => {
  const page = await visit({ ...WHOLE });
  const booth = await Dashboard.open(page, 'kvbooth-booth');
  await booth.cardsUntil('a dash in every card', isDash, 15_000);
  await booth.controls.says(/Stopped/);
  await booth.settle();
  await start();
  const turned = await firstTurn();
  await until('the first turn on its card', async () => (await booth.cards()).Requests !== '0');
  const cards = await booth.cardsUntil('a number in every card', isNumber, 15_000);
  console.log(`numbers ${((Date.now() - turned) / 1000).toFixed(1)} s after the first turn: ${JSON.stringify(cards)}`);
  await booth.controls.says(/Starting|Settling|Running/);
  await booth.settle();
});

test('gtc-demo: no panel fails', async ({ visit }) => {
  await start();
  await firstTurn();
  const page = await visit({ ...WHOLE });
  const demo = await Dashboard.open(page, 'gtc-demo', '?from=now-5m');
  await demo.settle();
  await demo.page.getByText('TTFT (p50 and p95)').first().waitFor();
});
