/** The presenter's guide: the search, the checklist, and numbers equal to the snapshot's. */
import { call, eventually, start, stop } from '../booth.mjs';
import { expect, gate, Page, section, test } from './page.mjs';

test('the search narrows questions and terms, from the keyboard', gate, async ({ visit }) => {
  const { page } = await Page.open(await visit(), '/guide#questions');
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

  await page.getByRole('link', { name: 'On this screen' }).click();
  const screens = section(page, 'What you see on each screen');
  await screens.getByRole('button', { name: 'KV routing' }).click();
  await screens.getByRole('link', { name: 'Open “KV routing”' }).click();
  await page.getByRole('rowheader', { name: 'First token, when prompts share a prefix' }).waitFor();
});

test('an answer and a term have addresses, and the search stays in sight', { tag: '@path' }, async ({ visit }) => {
  const { page } = await Page.open(await visit(), '/guide?visitor=technical#question-grove');
  await page.getByText('Grove is NVIDIA’s addition to Kubernetes').waitFor();
  await page.getByRole('link', { name: 'TTFT', exact: true }).click();
  await expect(page).toHaveURL(/\?visitor=technical#term-ttft$/);
  await eventually('the search is beside or above the term, and nothing lies over it', async () => {
    const box = await page.getByRole('search').boundingBox();
    const term = await page.locator('#term-ttft').boundingBox();
    const beside = box.x + box.width <= term.x;
    const uncovered = await page.getByRole('search').evaluate((search) => {
      const { left, top } = search.getBoundingClientRect();
      return search.contains(document.elementFromPoint(left + 1, top + 1));
    });
    if (!uncovered || box.y < 0 || (!beside && box.y + box.height > term.y)) {
      throw new Error(`search at ${box.y}, term at ${term.y}, uncovered: ${uncovered}`);
    }
    return true;
  });
});

test('the checklist ticks what is done, here and on another page', { tag: ['@gate', '@path'] }, async ({ visit }) => {
  const booth = await Page.open(await visit({ browser: {} }), '/guide#checklist');
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
