/** The load generator's page without a mouse. Inside Grafana, the way to our part is Grafana's. */
import { stateUntil, until } from '../booth.mjs';
import { expect, test } from '../journey.mjs';
import { Page } from './page.mjs';

test('from the keyboard: past the header to the pages, and Start', async ({ visit }) => {
  const booth = await Page.open(await visit({ browser: {} }));
  const { page } = booth;
  await until('Start is on offer', () => booth.button('Start').isEnabled());
  await page.keyboard.press('Tab');
  expect(await page.evaluate(() => document.activeElement.textContent)).toBe('Skip to content');
  const hasFocus = () => booth.button('Start').evaluate((button) => button === document.activeElement);
  for (let i = 0; i < 5 && !(await hasFocus()); i++) {
    await page.keyboard.press('Tab');
  }
  expect(await hasFocus()).toBe(true);
  await page.keyboard.press('Enter');
  await stateUntil('running', (s) => s.running);
  await page.getByRole('link', { name: 'Architecture' }).press('Enter');
  await page.locator('main h2').first().waitFor();
  await expect(page).toHaveTitle(/^Architecture · /);
  await expect(page.getByRole('link', { name: 'Architecture' })).toHaveAttribute('aria-current', 'page');
});
