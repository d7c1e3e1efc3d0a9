/** The workload steered from the page: what the header and the slider ask for, happens. */
import { eventAfter, newestEvent, stateUntil } from '../booth.mjs';
import { expect, host, inGrafanaToo, Page, test } from './page.mjs';

test('start, slider and stop are done, and told as theirs who asked', inGrafanaToo, async ({ visit }) => {
  const booth = await Page.open(await visit({ browser: {} }));
  await booth.says(/Stopped/);
  await expect(booth.button('Stop')).toBeDisabled();
  await booth.slider.focus();
  await booth.page.keyboard.press('ArrowRight');
  const { concurrency } = await stateUntil('another concurrency', (s) => s.concurrency.target !== 60);

  let before = await newestEvent();
  await booth.button('Start').click();
  await booth.says(/Starting|Settling|Running/);
  await expect(booth.button('Start')).toBeDisabled();
  await stateUntil('running as the slider says', (s) => s.running && s.concurrency.target === concurrency.target);
  await eventAfter(before, 'the start', (event) => /start/.test(event.kind) && event.by === host.by);

  await booth.slider.focus();
  await booth.page.keyboard.press('ArrowRight');
  await stateUntil('more', (s) => s.running && s.concurrency.target > concurrency.target);

  before = await newestEvent();
  await booth.button('Stop').click();
  await booth.says(/Stopped/);
  await stateUntil('stopped', (s) => s.phase === 'stopped');
  await eventAfter(before, 'the stop', (event) => /stop/.test(event.kind) && event.by === host.by);
});

test('an address that is no page’s says so, and leads back', async ({ visit }) => {
  const booth = await Page.open(await visit({ browser: {}, expected: [/404 \(Not Found\)/] }), '/nothing');
  await booth.page.getByText('Page not found').waitFor();
  await booth.page.getByRole('link', { name: 'Go to dashboard' }).click();
  await booth.page.locator('main h2').first().waitFor();
});
