/** The twelve pictures of README and docs, of a demo with two lanes. The last ones change its load, and restore it. */
import fs from 'node:fs/promises';
import path from 'node:path';

import { call, env, eventually, lane, start, stop } from './booth.mjs';
import { test } from './journey.mjs';
import { Dashboard, isNumber } from './pages.mjs';

const MINUTE = 60_000;

test.use({ viewport: { width: 1440, height: 900 }, deviceScaleFactor: 4 / 3, colorScheme: 'dark' });
test.setTimeout(15 * MINUTE); // it waits until the machine is idle

/** Otherwise pictures would show a warning. */
const keepsUp = async () => (await call('GET', '/api/v1/snapshot')).client.verdict !== 'client_bottleneck';

/** Takes a picture of the window, or of an element in it: WebP has a third of the bytes of PNG. */
async function take(page, name, element) {
  await eventually('the load generator keeps up', keepsUp, { within: 5 * MINUTE });
  const session = await page.context().newCDPSession(page);
  const box = element && (await element.boundingBox());
  const clip = box && { x: box.x - 12, y: box.y - 12, width: box.width + 24, height: box.height + 24, scale: 1 };
  const { data } = await session.send('Page.captureScreenshot', { format: 'webp', quality: 90, clip });
  await session.detach();
  await fs.mkdir(env.results, { recursive: true });
  await fs.writeFile(path.join(env.results, `${name}.webp`), Buffer.from(data, 'base64'));
}

/** Opens one of the load generator's own pages, and waits for its required elements. */
async function open(page, address, first) {
  await page.goto(env.loadgen + address);
  await first.first().waitFor({ timeout: 5 * MINUTE });
  await page.evaluate(() => document.fonts.ready.then(() => true));
}

test('the dashboards KV Booth and Routers in Grafana', async ({ page }) => {
  const booth = await Dashboard.open(page, 'kvbooth-booth', '?from=now-5m&kiosk', { refreshes: true });
  await booth.cardsUntil('a number in every card', isNumber);
  await booth.settle();
  await take(page, 'booth');
  const routers = await Dashboard.open(page, 'kvbooth-routers', '?from=now-10m&kiosk');
  await page.getByRole('table', { name: /requests with/ }).waitFor();
  await routers.settle();
  await take(page, 'routers');
});

const pages = [
  { name: 'dashboard', address: '/', first: (page) => page.getByRole('row', { name: /^TTFT \d/ }) },
  { name: 'kv-routing', address: '/kv-routing', first: (page) => page.getByText(/lowest cost/) },
  { name: 'what-if', address: '/what-if', first: (page) => page.getByText(/^\d+ runs computed/), height: 1200 },
];

for (const { name, address, first, height = 900 } of pages) {
  test(`the page ${name}`, async ({ page }) => {
    await page.setViewportSize({ width: 1440, height });
    await page.emulateMedia({ colorScheme: name === 'dashboard' ? 'light' : 'dark' });
    await open(page, address, first(page));
    await take(page, name);
  });
}

test('the architecture', async ({ page }) => {
  await page.emulateMedia({ reducedMotion: 'no-preference' });
  await open(page, '/architecture', page.locator('[data-light="head"]'));
  await page.getByRole('button', { name: /^Router/ }).click();
  await take(page, 'architecture');
});

test('the stage', async ({ page }) => {
  await page.setViewportSize({ width: 1440, height: 810 });
  await open(page, '/stage?view=one', page.getByRole('slider', { name: /^TTFT p95 of the last ten minutes/ }));
  await take(page, 'stage');
});

/**
 * Waits until both routers are in the middle of an answer, in the third turn or later, when there are results. Where a
 * showcase has ended, another one is started.
 */
function answering() {
  return eventually(
    'both answer',
    async () => {
      const now = (await call('GET', '/api/v1/twin')).showcase;
      if (now?.state !== 'running') {
        await call('POST', '/api/v1/twin/showcase', {});
        return false;
      }
      const middle = [now.a, now.b].every(({ text, done }) => text.length > 600 && !done);
      return now.turn > 2 && middle;
    },
    { within: 5 * MINUTE }
  );
}

for (const [name, address, height] of [
  ['side-by-side', '/side-by-side', 1000],
  ['stage-both', '/stage', 810],
]) {
  test(`both routers with a showcase, ${name}`, async ({ page }) => {
    await page.setViewportSize({ width: 1440, height });
    await open(page, address, page.getByRole('region', { name: 'Lane twin' }));
    await answering();
    await page.getByText(/was first, by/).waitFor();
    await take(page, name);
  });
}

test('a trial that has ended', async ({ page }) => {
  test.setTimeout(70 * MINUTE); // most of half an hour
  const modes = ['round_robin', 'kv'].map((mode) => ({ mode, speculation: 'not_recorded' }));
  const trial = { kind: 'trial', levels: [60], modes, together: true };
  const ended = async () => (await call('GET', '/api/v1/sweeps')).sweeps.some(({ state }) => state === 'done');
  if (!(await ended())) {
    await call('POST', '/api/v1/sweeps', trial);
  }
  await eventually('the trial has ended', ended, { within: 65 * MINUTE });
  await open(page, '/benchmarks', page.getByText(/ better than /));
  await take(page, 'benchmarks');
});

test('traffic before and while it is sent', async ({ page }) => {
  await stop();
  await call('PATCH', '/api/v1/workload', { concurrency: '6/s', shape: { preset: 'prefix' } });
  await page.setViewportSize({ width: 1200, height: 1600 });
  const controls = page.getByRole('region', { name: 'Workload controls' });
  await open(page, '/', controls);
  const traffic = controls.getByRole('button', { name: 'Traffic' });
  await traffic.click();
  await controls.getByRole('radio', { name: 'Gamma' }).check({ force: true });
  for (const [name, value] of [
    ['Groups', '600'],
    ['Burstiness', '0.25'],
    ['Ramp from', '1'],
    ['Ramp within', '120'],
  ]) {
    await controls.getByRole('textbox', { name, exact: true }).fill(value);
  }
  await controls.getByRole('figure').last().waitFor();
  await take(page, 'traffic-preview', controls);

  await controls.getByRole('button', { name: 'Apply' }).click();
  await traffic.click();
  await call('POST', '/api/v1/workload/start', {});
  await eventually('the run has its figures', async () => (await lane()).state.step.counted > 200, {
    within: 10 * MINUTE,
  });
  await controls.getByText(/above 50 ms/).waitFor();
  await take(page, 'traffic-rate', controls);
  await stop();
  await call('PATCH', '/api/v1/workload', { concurrency: 60, arrivals: 'poisson', shape: { preset: 'recorded' } });
  await start();
});
