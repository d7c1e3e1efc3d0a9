/** The recorded benchmark on the dashboard booth. */
import { eventually } from './booth.mjs';
import { expect, picture, test } from './journey.mjs';
import { Dashboard } from './pages.mjs';

/** High enough for every panel of a dashboard to be in sight: those out of it load nothing. */
const WHOLE = { height: 3600 };

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
  await eventually('seven levels', async () => String(await levels()) === '60,80,100,120,140,160,180', {
    within: 60_000,
  });
  for (const name of METRICS) {
    const curve = panel(`${name} by concurrency`);
    await curve.locator('canvas').first().waitFor();
    await expect(curve).toContainText('Round-robin');
    await expect(curve).toContainText('KV-aware');
  }
  await expect(panel('TTFT p95 by concurrency')).toContainText('SLO');
  await picture(page, 'booth-by-concurrency');
  await open('?var-levels=1');
  await eventually('all levels', async () => (await levels()).length > 7);
});
