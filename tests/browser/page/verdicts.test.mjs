/** What the screens say of the load generator itself, and what they do not keep. What they call better or worse stands in guide.test.mjs, where a step has settled anyhow. */
import { call, start, stateUntil, stop } from '../booth.mjs';
import { expect, Page, section, shoot, test } from './page.mjs';

test('the header says on every page whether the load generator keeps up', async ({ visit }) => {
  const booth = await Page.open(await visit({ browser: {} }), '/conversations');
  const header = booth.page.locator('header');
  for (const title of ['Architecture', 'Events', 'Dashboard']) {
    await booth.goTo(title);
    await header.getByText(/^Load generator (keeps up|self-check running|is the bottleneck)$/).waitFor();
  }
});

test('a step that ends too soon says why it became no row', async ({ visit }) => {
  await start(20);
  await stateUntil('at its concurrency', ({ step }) => step.settled !== undefined, { within: 60_000 });
  await stop();
  const { page } = await Page.open(await visit({ browser: {} }));
  const live = section(page, 'Live against baseline');
  await live.getByRole('combobox', { name: 'Compare with' }).click();
  await page.getByRole('option', { name: 'This target, as measured' }).click();
  await live
    .getByText(/KV-aware at 20, .* ago: the step ended after \d+ s of counted turns; a row takes 60 s\./)
    .waitFor();
  const { not_kept: told } = await call('GET', '/api/v1/comparison?baseline=this+target');
  expect(told.concurrency).toBe(20);
  await live.scrollIntoViewIfNeeded();
  await shoot(page, 'not-kept');
});
