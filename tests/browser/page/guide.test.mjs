/** The presenter's guide: what is searched is found, what was seen is ticked, and numbers are the snapshot's. */
import { call, eventually, start, stateUntil, stop } from '../booth.mjs';
import { expect, gate, Page, section, shoot, snapshotsOf, test } from './page.mjs';

test('the search narrows questions and terms, from the keyboard', gate, async ({ visit }) => {
  const { page } = await Page.open(await visit(), '/guide');
  const search = page.getByRole('searchbox', { name: 'Search questions and glossary' });
  const questions = section(page, 'Questions').locator('h4');
  await questions.nth(10).waitFor();
  const all = await questions.count();
  await search.fill('radix');
  await expect(questions).toHaveCount(1);
  await expect(page.getByRole('search').getByRole('status')).toHaveText(new RegExp(`^1 of ${all} questions`), {
    useInnerText: true,
  });
  await search.press('ArrowDown');
  await page.keyboard.press('Enter');
  await page.getByText('The lowest cost wins').waitFor();
  await search.press('Escape');
  await expect(questions).toHaveCount(all);

  const screens = section(page, 'What you see on each screen');
  await screens.getByRole('button', { name: 'KV routing' }).click();
  await screens.getByRole('link', { name: 'Open “KV routing”' }).click();
  await page.getByRole('rowheader', { name: 'First token, when prompts share a prefix' }).waitFor();
});

test('an answer and a term have addresses, and the search stays in sight', { tag: '@path' }, async ({ visit }) => {
  const { page } = await Page.open(await visit(), '/guide?visitor=technical#question-grove');
  await page.getByText('PodCliques').waitFor();
  await expect(page.getByRole('radio', { name: /^Came for the router/ })).toBeChecked();
  await page.getByRole('link', { name: 'TTFT', exact: true }).click();
  await expect(page).toHaveURL(/\?visitor=technical#term-ttft$/);
  await eventually('the search is above the term, and nothing lies over it', async () => {
    const box = await page.getByRole('search').boundingBox();
    const term = await page.locator('#term-ttft').boundingBox();
    const uncovered = await page.getByRole('search').evaluate((search) => {
      const { left, top } = search.getBoundingClientRect();
      return search.contains(document.elementFromPoint(left + 1, top + 1));
    });
    if (!uncovered || box.y < 0 || box.y + box.height > term.y) {
      throw new Error(`search at ${box.y}, term at ${term.y}, uncovered: ${uncovered}`);
    }
    return true;
  });
});

test('the checklist ticks what is done, here and on another page', { tag: ['@gate', '@path'] }, async ({ visit }) => {
  const booth = await Page.open(await visit({ browser: {} }), '/guide');
  const list = section(booth.page, /step by step/);
  const started = list.locator('li', { hasText: 'Start the workload' });
  await started.getByText('Press Start.').waitFor();
  await expect(started).toHaveAttribute('data-done', 'false');
  await start();
  await started.getByText(/^Running since .* 60 conversations/).waitFor();
  await expect(started).toHaveAttribute('data-done', 'true');
  await booth.goTo('Conversations');
  await call('PATCH', '/api/v1/workload', { concurrency: 80 });
  await stop();
  await booth.page.goBack();
  await started.getByText(/^Running since/).waitFor();
  await list
    .locator('li', { hasText: 'Raise the concurrency' })
    .getByText(/^From 60 to 80/)
    .waitFor();
  await list.getByRole('button', { name: 'Reset' }).click();
  await started.getByText('Press Start.').waitFor();
});

test('a phase is ticked by what was measured in it, stands on the features page, and is judged', async ({ visit }) => {
  const page = await visit({ browser: {} });
  const sent = snapshotsOf(page);
  const booth = await Page.open(page, '/guide');
  await call('PUT', '/api/v1/cluster/mode', { mode: 'kv', speculation: 'eagle3' });
  await stateUntil('EAGLE-3', ({ speculation, phase }) => speculation === 'eagle3' && phase !== 'switching');
  try {
    await start();
    const phase = section(page, /step by step/).locator('li', { hasText: 'Phase 3b' });
    await phase.getByText(/^Settling: \d+ s to go/).waitFor();
    await expect(phase).toHaveAttribute('data-done', 'true', { timeout: 180_000 });
    await phase.getByText(/median ITL .* Accepted: \d+ % of guesses, \d\.\d\d tokens per step/).waitFor();
    await booth.goTo('Dynamo features');
    const row = page.getByRole('rowheader', { name: /^3b ·/ }).locator('xpath=..');
    await row.getByText('current').waitFor();
    await page.getByText(/^Now \d+ % of the drafted tokens are accepted/).waitFor();
    await page.getByRole('article', { name: 'Speculative decoding' }).getByText('In use here').waitFor();
    await shoot(page, 'features-phases', { whole: true });
    await booth.goTo('Dashboard');
    await judged(page, sent);
  } finally {
    await call('PUT', '/api/v1/cluster/mode', { mode: 'kv', speculation: 'not_recorded' });
    await stateUntil('as recorded', ({ speculation, phase }) => speculation !== 'eagle3' && phase !== 'switching');
  }
});

const outcomes = {
  better: / better$/,
  worse: / worse$/,
  no_difference: /no difference shown$/,
  too_variable: /too variable to say$/,
};

/**
 * Waits until the comparison calls a settled step what the load generator does, or nothing while that is the
 * bottleneck.
 */
async function judged(page, sent) {
  const live = section(page, 'Live against baseline');
  const row = live.getByRole('row', { name: /^Output tokens\/s/ });
  await eventually('the words of one of the newest snapshots', async () => {
    const cells = await row.getByRole('cell').allInnerTexts();
    const warned = await live.getByText('Nothing is called better or worse').isVisible();
    const told = sent.slice(0, 3).map(({ lanes }) => lanes[0].baseline);
    const fits = told.find(({ withheld, columns }) => {
      const found = columns.map((column) => column.output_tokens_per_second.improvement?.outcome);
      return withheld === undefined
        ? !warned && found.length > 0 && found.every((outcome, i) => outcomes[outcome]?.test(cells[i + 1].trim()))
        : warned && found.every((outcome) => outcome === undefined);
    });
    if (!fits) {
      throw new Error(`${JSON.stringify(cells)}, warned: ${warned}, told: ${JSON.stringify(told[0])}`);
    }
    return true;
  });
}
