/** The stage view: one screen for a crowd, operated by keys; on a phone, by thumb. */
import { colourViolations, violations } from '../axe.mjs';
import { call, firstTurn, killPart, newestEvent, eventAfter, start, startPart, stateUntil, until } from '../booth.mjs';
import { doors, expect, gone, host, inGrafanaToo, Page, shoot, test } from './page.mjs';

const figure = (page, name) => page.getByRole('region', { name, exact: true });
const value = async (page, name) => (await figure(page, name).getByTestId(name).innerText()).trim();
const snapshot = async () => (await call('GET', '/api/v1/snapshot')).lanes[0];

/** Opens the stage view by its key, from another page. */
async function byKey(page) {
  const booth = await Page.open(page, '/guide');
  await page.locator('main h2').first().waitFor();
  await page.keyboard.press('s');
  await figure(page, 'TTFT p95').waitFor();
  return booth;
}

const SCREEN = { width: 1920, height: 1080 };
const WALL = { width: 3840, height: 2160 };

/** The height of letters on the screen, as a share of its height. */
const height = (locator) =>
  locator.evaluate((element) => parseFloat(getComputedStyle(element).fontSize) / window.innerHeight);

test('one screen for the crowd, from a screen to a wall', inGrafanaToo, async ({ visit }) => {
  await start();
  await firstTurn();
  const page = await visit({ width: 1920, height: 1080, browser: {} });
  const booth = await byKey(page);
  await booth.says(/Starting|Settling|Running/);
  await until('a figure, and a curve', async () => /\d/.test(await value(page, 'TTFT p95')));
  await page.getByRole('img', { name: /^Output tokens\/s of the last ten minutes, at most [1-9]/ }).waitFor();
  await until('a bar for each worker', async () => (await figure(page, 'Workers').getByRole('listitem').count()) === 3);
  const { baseline } = await snapshot();
  const recorded = Math.round(baseline.columns[0].output_tokens_per_second.value).toLocaleString('en');
  await expect(page.getByRole('list', { name: 'Output tokens/s of the baseline' })).toContainText(recorded);
  await expect(page.getByRole('navigation', { name: 'Pages' })).toHaveCount(0);
  expect(await violations(page, host.ours)).toEqual([]);
  for (const size of host.alone ? [WALL, SCREEN] : [SCREEN]) {
    await page.setViewportSize(size);
    // From five metres: a figure is as high as a tenth of the screen, a word no less than a fiftieth.
    await until('large figures', async () => (await height(page.getByTestId('TTFT p95'))) > 0.1);
    expect(await height(figure(page, 'Workers').getByRole('listitem').first())).toBeGreaterThan(0.02);
    // All of it at once, and nothing else.
    await until('nothing beside it', async () => (await booth.overflow()) === 0);
    await until('nothing below it', () =>
      page.evaluate(() => document.scrollingElement.scrollHeight - window.innerHeight < 1)
    );
    await shoot(page, `stage-dark-${size.width}x${size.height}`);
  }
  if (host.alone) {
    // Grafana's colours are not those of the browser; they change no box.
    await page.emulateMedia({ colorScheme: 'light' });
    expect(await colourViolations(page, host.ours)).toEqual([]);
    await shoot(page, 'stage-light-1920x1080');
  }
});

test(
  'the keys: start, mode after a confirmation, one increment, the list, stop, and back',
  inGrafanaToo,
  async ({ visit }) => {
    const page = await visit({ browser: {} });
    const booth = await byKey(page);
    await booth.says('Stopped');
    const before = await newestEvent();
    await page.keyboard.press('Space');
    await eventAfter(before, 'a start', ({ kind, by }) => kind === 'start' && by === host.by);
    await booth.says(/Starting|Settling|Running/);

    await page.keyboard.press('r');
    await page.getByText('Change to Round-robin?').waitFor();
    await page.keyboard.press('Escape');
    await expect(page.getByText('Change to Round-robin?')).toHaveCount(0);
    await page.keyboard.press('R');
    await page.getByText('Change to Round-robin?').waitFor();
    await page.keyboard.press('Enter');
    await stateUntil('round-robin', ({ mode, phase }) => mode === 'round_robin' && phase === 'running');
    await expect(page.getByRole('heading', { level: 1, name: 'Round-robin' })).toBeVisible();
    const marked = page.getByRole('img', { name: /^TTFT p95 of the last ten minutes.*→ Round-robin/ });
    await marked.waitFor();
    await page.keyboard.press('k');
    await page.getByText('Change to KV-aware?').waitFor();
    await page.keyboard.press('Enter');
    await stateUntil('kv', ({ mode, phase }) => mode === 'kv' && phase === 'running');

    await page.keyboard.press('ArrowUp');
    await stateUntil('one increment more', ({ concurrency }) => concurrency.target > 60);
    await page.keyboard.press('ArrowDown');
    await stateUntil('and less', ({ concurrency }) => concurrency.target === 60);

    await page.keyboard.press('?');
    await page.getByText('Keys of the stage view').waitFor();
    await shoot(page, 'stage-keys');
    await page.keyboard.press('Escape');
    await expect(page.getByText('Keys of the stage view')).toHaveCount(0);

    await page.keyboard.press('Space');
    await stateUntil('stopped', ({ phase }) => phase === 'stopped');
    await until('no figure', async () => /^—/.test(await value(page, 'TTFT p95')));
    await page.reload();
    await figure(page, 'TTFT p95').waitFor();
    await page
      .getByRole('img', { name: /→ Round-robin.*→ KV-aware/ })
      .first()
      .waitFor(); // it was kept
    await shoot(page, 'stage-stopped');
    await page.keyboard.press('Escape');
    await expect(page).toHaveURL(/\/guide$/);
    await expect(page.getByRole('region', { name: 'TTFT p95' })).toHaveCount(0);
  }
);

test('a lost load generator leaves no figure, and a gap', async ({ visit }) => {
  await start();
  await firstTurn();
  const page = await visit({ browser: {}, expected: gone });
  const booth = await byKey(page);
  await until('a figure', async () => /\d/.test(await value(page, 'TTFT p95')));
  await killPart('loadgen');
  await booth.says('Load generator lost');
  await until('no figure', async () => /^—/.test(await value(page, 'TTFT p95')));
  await expect(page.getByRole('alert').filter({ hasText: 'No data from the load generator since' })).toBeVisible();
  await expect(
    page.getByRole('img', { name: /^Output tokens\/s of the last ten minutes, at most [1-9]/ })
  ).toBeVisible();
  await shoot(page, 'stage-lost');
  await startPart('loadgen');
  await booth.says('Stopped');
  await expect(
    page.getByRole('img', { name: /^Output tokens\/s of the last ten minutes, at most [1-9]/ })
  ).toBeVisible();
});

test('in one hand', async ({ visit }) => {
  const page = await visit({
    width: 390,
    height: 844,
    browser: { colorScheme: 'dark', hasTouch: true, isMobile: true },
  });
  const booth = await Page.open(page, '/stage');
  const controls = page.getByRole('region', { name: 'Workload controls' });
  const button = (name) => controls.getByRole('button', { name, exact: true });
  await button('Start').click();
  await stateUntil('running', ({ running }) => running);
  await firstTurn();
  await button('More conversations').click();
  await stateUntil('more', ({ concurrency }) => concurrency.target > 60);
  const boxes = await controls
    .getByRole('button')
    .evaluateAll((all) => all.map((one) => one.getBoundingClientRect().toJSON()));
  expect(boxes.length).toBeGreaterThanOrEqual(5);
  for (const { width, height: tall, top, bottom } of boxes) {
    expect(Math.min(width, tall)).toBeGreaterThanOrEqual(44);
    expect(top).toBeGreaterThan(844 / 2); // within reach of the thumb
    expect(bottom).toBeLessThanOrEqual(844);
  }
  expect(await booth.overflow()).toBe(0);
  expect(await violations(page, host.ours)).toEqual([]);
  await shoot(page, 'stage-dark-390x844');
  await button('Round-robin').click();
  await page.getByText('Change to Round-robin?').waitFor();
  await shoot(page, 'stage-dark-390x844-confirm');
  await page.getByRole('button', { name: 'Cancel (Esc)' }).click();
  await page.emulateMedia({ colorScheme: 'light' });
  expect(await colourViolations(page, host.ours)).toEqual([]);
  await shoot(page, 'stage-light-390x844');
  await button('Stop').click();
  await stateUntil('stopped', ({ phase }) => phase === 'stopped');
});

if (host.alone) {
  test('a visitor who may only look sees figures, and is told why keys do nothing', async ({ visit }) => {
    const page = await visit({ width: 390, height: 844, browser: {} });
    await Page.open(page, '/stage', doors.public);
    await figure(page, 'TTFT p95').waitFor();
    await page.keyboard.press('Space');
    await page.getByText('Starting and stopping the workload requires the token.').waitFor();
    await expect(page.getByRole('region', { name: 'Workload controls' })).toHaveCount(0);
  });
}
