/** The stage view: one screen for an audience, operated by keys, and on a phone by touch. */
import { colorViolations, violations } from '../axe.mjs';
import { call, eventAfter, eventually, firstTurn, newestEvent, start, stateUntil } from '../booth.mjs';
import { smallTexts } from '../layout.mjs';
import { expect, host, Page, test } from './page.mjs';

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

/** The font size on the screen, as a ratio of its height. */
const height = (locator) =>
  locator.evaluate((element) => parseFloat(getComputedStyle(element).fontSize) / window.innerHeight);

test('one screen for the crowd, from a screen to a wall', { tag: '@path' }, async ({ visit }) => {
  await start();
  await firstTurn();
  const page = await visit({ width: 1920, height: 1080, browser: {} });
  const booth = await byKey(page);
  await booth.says(/Starting|Settling|Running/);
  await eventually('a figure, and a curve', async () => /\d/.test(await value(page, 'TTFT p95')));
  await page.getByRole('img', { name: /^Output tokens\/s of the last ten minutes, at most [1-9]/ }).waitFor();
  await eventually(
    'a bar for each worker',
    async () => (await figure(page, 'Workers').getByRole('listitem').count()) === 3
  );
  const { baseline } = await snapshot();
  const recorded = Math.round(baseline.columns[0].output_tokens_per_second.value).toLocaleString('en');
  await expect(page.getByRole('list', { name: 'Output tokens/s of the baseline' })).toContainText(recorded);
  await expect(page.getByRole('navigation', { name: 'Pages' })).toHaveCount(0);
  expect(await violations(page, host.ours)).toEqual([]);
  for (const size of host.alone ? [WALL, SCREEN] : [SCREEN]) {
    await page.setViewportSize(size);
    // Legible from five meters: a figure has a tenth of the screen's height, and no text less than 24 px of 1080.
    await eventually('large figures', async () => (await height(page.getByTestId('TTFT p95'))) > 0.1);
    expect(await smallTexts(page, host.ours, 24)).toEqual([]);
    // Everything is visible at once, and nothing else is.
    await eventually('nothing beside it', async () => (await booth.overflow()) === 0);
    await eventually('nothing below it', () =>
      page.evaluate(() => document.scrollingElement.scrollHeight - window.innerHeight < 1)
    );
  }
  if (host.alone) {
    // Grafana's colors are not those of the browser; they change no box.
    await page.emulateMedia({ colorScheme: 'light' });
    expect(await colorViolations(page, host.ours)).toEqual([]);
  }
});

test(
  'the keys: start, mode after a confirmation, one increment, a new step, the list, stop, and back',
  { tag: ['@gate', '@path'] },
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
    // What is stored has the mode of each second, so either mode lasts for some.
    const lasts = ({ step }) => Date.now() - Date.parse(step.started) > 3000;
    await stateUntil('round-robin for some seconds', lasts);
    await page.keyboard.press('k');
    await page.getByText('Change to KV-aware?').waitFor();
    await page.keyboard.press('Enter');
    await stateUntil('kv', (state) => state.mode === 'kv' && state.phase === 'running' && lasts(state));

    await page.keyboard.press('ArrowUp');
    await stateUntil('one increment more', ({ concurrency }) => concurrency.target > 60);
    await page.keyboard.press('ArrowDown');
    await stateUntil('and less', ({ concurrency }) => concurrency.target === 60);

    const { step } = (await snapshot()).state;
    await page.keyboard.press('n');
    await stateUntil('a new step', ({ step: { id } }) => id > step.id);

    await page.keyboard.press('?');
    await page.getByText('Keys of the stage view').waitFor();
    await page.keyboard.press('Escape');
    await expect(page.getByText('Keys of the stage view')).toHaveCount(0);

    await page.keyboard.press('Space');
    await page.getByText('Stop the workload?').waitFor();
    await page.keyboard.press('Enter');
    await stateUntil('stopped', ({ phase }) => phase === 'stopped');
    await page
      .getByRole('region', { name: 'Result' })
      .getByText(/stopped/i)
      .first()
      .waitFor();
    await eventually('no figure', async () => /^—/.test(await value(page, 'TTFT p95')));
    await page.reload();
    await figure(page, 'TTFT p95').waitFor();
    await page
      .getByRole('img', { name: /→ Round-robin.*→ KV-aware/ })
      .first()
      .waitFor(); // it was stored
    await page.keyboard.press('Escape');
    await expect(page).toHaveURL(/\/guide$/);
    await expect(page.getByRole('region', { name: 'TTFT p95' })).toHaveCount(0);
  }
);

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
  await button('Fewer conversations').click();
  const { step } = await stateUntil('fewer', ({ concurrency }) => concurrency.target === 60);
  await button('Measure anew').click();
  await stateUntil('a new step', ({ step: { id } }) => id > step.id);
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
  await button('Round-robin').click();
  await page.getByText('Change to Round-robin?').waitFor();
  await page.getByRole('button', { name: 'Cancel (Esc)' }).click();
  await page.emulateMedia({ colorScheme: 'light' });
  expect(await colorViolations(page, host.ours)).toEqual([]);
  await button('Stop').click();
  await booth.confirm('Stop');
  await stateUntil('stopped', ({ phase }) => phase === 'stopped');
});
