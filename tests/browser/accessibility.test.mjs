/** Our own parts of the pages are usable without a mouse. */
import { stateUntil } from './booth.mjs';
import { expect, test } from './journey.mjs';
import { Dashboard } from './pages.mjs';

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
