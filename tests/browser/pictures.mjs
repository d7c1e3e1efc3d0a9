/** The pictures of README and docs, of a demo with one lane or with two: LANES says which. Nothing is steered but a showcase begun. */
import { call, env, eventually } from './booth.mjs';
import { picture, test } from './journey.mjs';
import { Dashboard, isNumber } from './pages.mjs';

const lanes = process.env.LANES;

test.use({ viewport: { width: 1920, height: 1080 }, colorScheme: 'dark' });
test.setTimeout(600_000); // it waits for a quiet moment of the machine

const keepsUp = async () => (await call('GET', '/api/v1/snapshot')).client.verdict === 'ok';

/** Opens one of the load generator's own pages, and waits for what has to be on it. */
async function open(page, path, first) {
  await page.goto(env.loadgen + path);
  await first.first().waitFor();
  await page.evaluate(() => document.fonts.ready.then(() => true));
  await eventually('the load generator keeps up', keepsUp, { within: 250_000 });
}

test('one: the dashboard in Grafana', async ({ page }) => {
  test.skip(lanes !== 'one');
  const booth = await Dashboard.open(page, 'kvbooth-booth', '?from=now-5m', { refreshes: true });
  await booth.cardsUntil('a number in every card', isNumber);
  await booth.settle();
  await picture(page, 'booth');
});

test('one: the page, the architecture and the stage', async ({ page }) => {
  test.skip(lanes !== 'one');
  await open(page, '/', page.getByRole('row', { name: /^TTFT \d/ }));
  await picture(page, 'page-dashboard');
  await page.setViewportSize({ width: 1600, height: 1000 });
  await page.emulateMedia({ reducedMotion: 'no-preference' });
  await open(page, '/architecture', page.locator('[data-light="head"]'));
  await page.getByRole('button', { name: /^Router/ }).click();
  await picture(page, 'page-architecture');
  await page.setViewportSize({ width: 1920, height: 1080 });
  await open(page, '/stage', page.getByRole('img', { name: /^TTFT p95 of the last ten minutes, at most/ }));
  await picture(page, 'stage');
});

/**
 * Waits until both routers are in the middle of an answer while the load generator keeps up, in the third turn or
 * later: results are there by then. Where a showcase has ended, it begins another one.
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
      return now.turn > 2 && middle && (await keepsUp());
    },
    { within: 250_000 }
  );
}

for (const [name, path] of [
  ['side-by-side', '/side-by-side'],
  ['stage-both', '/stage?view=both'],
]) {
  test(`two: both routers with a showcase, ${name}`, async ({ page }) => {
    test.skip(lanes !== 'two');
    await open(page, path, page.getByRole('region', { name: 'Lane twin' }));
    await answering();
    await page.getByText(/was first, by/).waitFor();
    await picture(page, name);
  });
}

test('two: the dashboard Routers in Grafana', async ({ page }) => {
  test.skip(lanes !== 'two');
  await page.setViewportSize({ width: 1440, height: 1700 });
  const routers = await Dashboard.open(page, 'kvbooth-routers', '?from=now-10m&kiosk');
  await page.getByRole('table', { name: /requests with/ }).waitFor();
  await routers.settle();
  await picture(page, 'routers');
});
