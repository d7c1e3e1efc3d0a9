/** The pictures of README and docs, of a demo with one lane or with two: LANES says which. Nothing is steered but a showcase begun. */
import { call, env, until } from './booth.mjs';
import { picture, test } from './journey.mjs';
import { Dashboard, isNumber } from './pages.mjs';

const lanes = process.env.LANES;

test.use({ viewport: { width: 1920, height: 1080 }, colorScheme: 'dark' });

/** Opens one of the load generator's own pages, and waits for what has to be on it. */
async function open(page, path, first) {
  await page.goto(env.loadgen + path);
  await first.first().waitFor();
  await page.evaluate(() => document.fonts.ready.then(() => true));
  await until(
    'the load generator keeps up',
    async () => (await call('GET', '/api/v1/snapshot')).client.verdict === 'ok',
    { within: 300_000 }
  );
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

test('two: both routers with a showcase, on the page and on the stage', async ({ page }) => {
  test.skip(lanes !== 'two');
  await open(page, '/side-by-side', page.getByRole('table', { name: /pairs of turns/ }));
  await call('POST', '/api/v1/twin/showcase', {});
  const showcase = async () => (await call('GET', '/api/v1/twin')).showcase;
  const answering = (turn) =>
    until(
      `both answer in turn ${turn}`,
      async () => {
        const now = await showcase();
        return now.turn === turn && [now.a, now.b].every(({ text, done }) => text.length > 600 && !done);
      },
      { within: 300_000 }
    );
  await answering(3);
  await picture(page, 'side-by-side');
  await page.goto(`${env.loadgen}/stage?view=both`);
  await answering(4);
  await page.getByText(/was first, by/).waitFor();
  await picture(page, 'stage-both');
  await call('DELETE', '/api/v1/twin/showcase');
});

test('two: the dashboard Routers in Grafana', async ({ page }) => {
  test.skip(lanes !== 'two');
  await page.setViewportSize({ width: 1920, height: 2100 });
  const routers = await Dashboard.open(page, 'kvbooth-routers', '?from=now-10m&kiosk');
  await page.getByRole('table', { name: /requests with/ }).waitFor();
  await routers.settle();
  await picture(page, 'routers');
});
