/** The dashboards, before and after Start. */
import { env, firstTurn, start, until } from './booth.mjs';
import { expect, picture, test } from './journey.mjs';
import { Dashboard, isDash, isNumber } from './pages.mjs';

/** High enough for every panel of a dashboard to be in sight: those out of it load nothing. */
const WHOLE = { height: 3600 };

test('the app is enabled by its provisioning, and brings its dashboards', async ({ visit }) => {
  const page = await visit({ login: 'admin' });
  const ask = async (path) => (await page.context().request.get(env.grafana + path)).json();
  const settings = await ask('/api/plugins/kvbooth-inference-app/settings');
  expect(settings.enabled).toBe(true);
  expect(settings.jsonData.sidecarUrl).toBe(env.loadgen);
  const found = await ask('/api/search?type=dash-db');
  expect(found.map(({ uid }) => uid).sort()).toEqual([
    'gtc-demo',
    'kvbooth-benchmarks',
    'kvbooth-booth',
    'kvbooth-routers',
  ]);
});

test('booth: a dash in every card before Start, a number in each after the first turn', async ({ visit }) => {
  const booth = await Dashboard.open(await visit(), 'kvbooth-booth');
  await booth.cardsUntil('a dash in every card', isDash);
  await booth.controls.says(/Stopped/);
  await start();
  const turned = await firstTurn();
  await until('the first turn on its card', async () => (await booth.cards()).Requests !== '0');
  const cards = await booth.cardsUntil('a number in every card', isNumber);
  console.log(`numbers ${((Date.now() - turned) / 1000).toFixed(1)} s after the first turn: ${JSON.stringify(cards)}`);
  await booth.controls.says(/Starting|Settling|Running/);
});

test('gtc-demo: no panel fails', async ({ visit }) => {
  await start();
  await firstTurn();
  const page = await visit({ ...WHOLE });
  const demo = await Dashboard.open(page, 'gtc-demo', '?from=now-5m');
  await demo.settle();
  await demo.page.getByText('TTFT (p50 and p95)').first().waitFor();
});

const METRICS = [
  'TTFT p50',
  'TTFT p95',
  'TPOT p95',
  'E2E p50',
  'E2E p95',
  'Output tokens/s',
  'Requests/s',
  'KV hit rate',
];

test('booth: the recorded benchmark by concurrency, at the levels of the slider or at all, as a table and as curves', async ({
  visit,
}) => {
  const page = await visit({ ...WHOLE });
  const panel = (title) => new Dashboard(page).panel(title);
  const table = panel('Recorded benchmark, TTFT p50, E2E and rates');
  const levels = async () => {
    const rows = await table.locator('[role="row"]').allInnerTexts();
    return rows.map((text) => parseInt(text, 10)).filter((level) => level > 0);
  };
  const open = async (query) => {
    await Dashboard.open(page, 'kvbooth-booth', query);
    // What was recorded is asked for when it is wanted, not every five seconds with the rest.
    await page.getByText('Benchmark by concurrency').first().click();
  };
  await open();
  await until('seven levels', async () => String(await levels()) === '60,80,100,120,140,160,180', { within: 60_000 });
  for (const name of METRICS) {
    const curve = panel(`${name} by concurrency`);
    await curve.locator('canvas').first().waitFor();
    await expect(curve).toContainText('Round-robin');
    await expect(curve).toContainText('KV-aware');
  }
  await expect(panel('TTFT p95 by concurrency')).toContainText('SLO');
  await picture(page, 'booth-by-concurrency');
  await open('?var-levels=1');
  await until('all levels', async () => (await levels()).length > 7, { within: 60_000 });
});
