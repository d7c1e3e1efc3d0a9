/** Our own parts of the pages: without a violation of WCAG 2 AA, and usable without a mouse. */
import { violations } from './axe.mjs';
import { firstTurn, start, stateUntil } from './booth.mjs';
import { expect, test } from './journey.mjs';
import { ConfigPage, Dashboard } from './pages.mjs';

for (const theme of ['dark', 'light']) {
  test(`no violation in the panels, ${theme}`, async ({ visit }) => {
    const page = await visit({ login: 'editor' });
    await start();
    const { controls } = await Dashboard.open(page, 'kvbooth-booth', `?theme=${theme}`);
    await firstTurn();
    await controls.says(/Starting|Settling|Running/);
    await controls.button('More').click();
    const ours = ['section[aria-label="Workload controls"]', 'section[aria-label="Live against baseline"]'];
    expect(await violations(page, ...ours)).toEqual([]);
  });

  test(`no violation in the configuration, ${theme}`, async ({ visit }) => {
    const page = await visit({ login: 'admin' });
    const config = await ConfigPage.open(page, theme);
    await config.loadgen.waitFor();
    await config.test();
    expect(await violations(page, 'form[aria-label="Connection"]', 'form[aria-label="Load generator"]')).toEqual([]);
  });
}

test('everything from the keyboard: the slider announces its value, Enter starts', async ({ visit }) => {
  const page = await visit({ login: 'editor' });
  const { controls } = await Dashboard.open(page, 'kvbooth-booth');
  await controls.says(/Stopped/);
  const reach = async (wanted, key) => {
    for (let i = 0; i < 20 && !(await wanted.evaluate((element) => element === document.activeElement)); i++) {
      await page.keyboard.press(key);
    }
    expect(await wanted.evaluate((element) => element === document.activeElement), 'it is reached').toBe(true);
  };
  await page.getByRole('group', { name: 'Workload controls' }).first().focus();
  await reach(controls.slider, 'Tab');
  for (let i = 0; i < 6; i++) {
    await page.keyboard.press('ArrowRight');
  }
  await expect(controls.slider).toHaveAttribute('aria-valuetext', '120 conversations');
  await reach(controls.button('Start'), 'Shift+Tab');
  await page.keyboard.press('Enter');
  await stateUntil('running at 120', (s) => s.phase === 'running' && s.concurrency.target === 120);
});
