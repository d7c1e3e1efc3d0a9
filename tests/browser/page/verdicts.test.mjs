/** What the screens call better, worse or neither, and what they do not keep: the load generator's word, each time. */
import { call, start, stateUntil, stop, until } from '../booth.mjs';
import { expect, Page, section, shoot, test, waits } from './page.mjs';

const words = {
  better: / better$/,
  worse: / worse$/,
  no_difference: /no difference shown$/,
  too_variable: /too variable to say$/,
};

test(
  'a settled step is judged in words, or not at all while the load generator is the bottleneck',
  waits,
  async ({ visit }) => {
    await start();
    await stateUntil('settled', ({ running, settling }) => running && !settling, { within: 180_000 });
    const sent = [];
    const page = await visit({ browser: {} });
    page.on('websocket', (socket) => socket.on('framereceived', ({ payload }) => sent.unshift(JSON.parse(payload))));
    await Page.open(page);
    const live = section(page, 'Live against baseline');
    const row = live.getByRole('row', { name: /^Output tokens\/s/ });
    await until('the words of one of the newest snapshots', async () => {
      const cells = await row.getByRole('cell').allInnerTexts();
      const warned = await live.getByText('Nothing is called better or worse').isVisible();
      const told = sent.slice(0, 3).map(({ lanes }) => lanes[0].baseline);
      const fits = told.find(({ withheld, columns }) => {
        const outcomes = columns.map((column) => column.output_tokens_per_second.improvement?.outcome);
        return withheld === undefined
          ? !warned && outcomes.every((outcome, i) => words[outcome]?.test(cells[i + 1].trim()))
          : warned && outcomes.every((outcome) => outcome === undefined);
      });
      if (!fits) {
        throw new Error(`${JSON.stringify(cells)}, warned: ${warned}, told: ${JSON.stringify(told[0])}`);
      }
      console.log(fits.withheld ?? cells.slice(1).join(' | ').replace(/\s+/g, ' '));
      return true;
    });
    await shoot(page, 'verdicts');
  }
);

test('the header says on every page whether the load generator keeps up', async ({ visit }) => {
  const booth = await Page.open(await visit({ browser: {} }), '/conversations');
  const header = booth.page.locator('header');
  for (const title of ['Architecture', 'Events', 'Dashboard']) {
    await booth.goTo(title);
    await header.getByText(/^Load generator (keeps up|checks itself|is the bottleneck)$/).waitFor();
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
