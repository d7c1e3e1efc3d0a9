/** The workload controlled from the page by the header and the controls. */
import { call, eventAfter, newestEvent, start, stateUntil } from '../booth.mjs';
import { expect, gate, host, Page, section, test } from './page.mjs';

test(
  'start, slider, mode and stop are done, and reported with their author',
  { tag: ['@gate', '@path'] },
  async ({ visit }) => {
    const booth = await Page.open(await visit());
    await booth.says(/Stopped/);
    await expect(booth.button('Stop')).toBeDisabled();
    await booth.slider.press('ArrowRight');
    const { concurrency } = await stateUntil('another concurrency', (s) => s.concurrency.target !== 60);

    let before = await newestEvent();
    await booth.button('Start').click();
    await booth.says(/Starting|Settling|Running/);
    await expect(booth.button('Start')).toBeDisabled();
    await stateUntil('running as the slider says', (s) => s.running && s.concurrency.target === concurrency.target);
    await eventAfter(before, 'the start', (event) => /start/.test(event.kind) && event.by === host.by);
    await booth.slider.press('ArrowRight');
    await stateUntil('more', (s) => s.running && s.concurrency.target > concurrency.target);

    before = await newestEvent();
    const modes = section(booth.page, 'Workload controls').getByRole('group', { name: 'Routing', exact: true });
    await modes.getByRole('button', { name: 'Round-robin' }).click();
    await booth.confirm('Change');
    await stateUntil('round-robin', (s) => s.mode === 'round_robin' && s.phase === 'running');
    await eventAfter(before, 'the switch', (event) => event.kind === 'mode_change' && event.by === host.by);
    await expect(modes.getByRole('button', { name: 'Round-robin' })).toHaveAttribute('aria-pressed', 'true');

    before = await newestEvent();
    await booth.button('Stop').click();
    await booth.confirm('Stop');
    await booth.says(/Stopped/);
    await stateUntil('stopped', (s) => s.phase === 'stopped');
    await eventAfter(before, 'the stop', (event) => /stop/.test(event.kind) && event.by === host.by);
  }
);

test('every conversation has a text of its own where the controls say so', gate, async ({ visit }) => {
  const { page } = await Page.open(await visit());
  await start(15);
  const before = await stateUntil('ten texts', ({ shape }) => shape.openings === 10);
  const openings = section(page, 'Workload controls').getByRole('group', { name: 'Opening texts' });
  await expect(openings.getByRole('button', { name: '10', exact: true })).toHaveAttribute('aria-pressed', 'true');
  await openings.getByRole('button', { name: 'One each' }).click();
  await stateUntil('a step of its own', ({ shape, step }) => shape.openings === 0 && step.id > before.step.id);
  const differences = async () => (await call('GET', '/api/v1/snapshot')).lanes[0].baseline.differences;
  await expect
    .poll(differences)
    .toContainEqual({ field: 'openings', live: 'one for each conversation', baseline: '10' });
  await openings.getByRole('button', { name: '10', exact: true }).click();
  await stateUntil('ten texts again', ({ shape }) => shape.openings === 10);
});

test('from the keyboard: past the header to the pages, and Start', gate, async ({ visit }) => {
  const booth = await Page.open(await visit());
  const { page } = booth;
  await expect(booth.button('Start')).toBeEnabled();
  await page.keyboard.press('Tab');
  expect(await page.evaluate(() => document.activeElement.textContent)).toBe('Skip to content');
  const hasFocus = () => booth.button('Start').evaluate((button) => button === document.activeElement);
  for (let i = 0; i < 5 && !(await hasFocus()); i++) {
    await page.keyboard.press('Tab');
  }
  expect(await hasFocus()).toBe(true);
  await page.keyboard.press('Enter');
  await stateUntil('running', (s) => s.running);
  const link = page.getByRole('link', { name: 'Architecture' });
  await link.press('Enter');
  await page.locator('main h2').first().waitFor();
  await expect(page).toHaveTitle(/^Architecture · /);
  await expect(link).toHaveAttribute('aria-current', 'page');
});

test('an address that is no page’s says so, and leads back', gate, async ({ visit }) => {
  const booth = await Page.open(await visit({ expected: [/404 \(Not Found\)/] }), '/nothing');
  await booth.page.getByText('Page not found').waitFor();
  await booth.page.getByRole('link', { name: 'Go to dashboard' }).click();
  await section(booth.page, 'Key figures').waitFor();
});
