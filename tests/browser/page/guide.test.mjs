/** The presenter's guide: the search, the table of contents, and numbers equal to the snapshot's. */
import { call, eventually, lane, start } from '../booth.mjs';
import { expect, gate, Page, section, test } from './page.mjs';

const contents = (page) => page.getByRole('navigation', { name: 'On this page' });

test('the search shows what matches, and a result opens its chapter', gate, async ({ visit }) => {
  const { page } = await Page.open(await visit(), '/guide');
  const search = page.getByRole('searchbox', { name: 'Search the guide' });
  const status = page.getByRole('search').getByRole('status');
  await section(page, 'Thirty seconds').waitFor();
  await search.fill('radix');
  await page.getByText('The lowest cost wins').first().waitFor();
  await expect(status).toHaveText(/^\d of \d\d\d entries$/);
  await page.getByRole('link', { name: 'How does the router decide where a request goes?' }).click();
  await expect(page).toHaveURL(/#question-router$/);
  await expect(search).toHaveValue('');
  await section(page, 'Technical questions').waitFor();
  await search.fill('zebra');
  await page.getByText('No matches. Try fewer or different words.').waitFor();
  await search.press('Escape');
  await section(page, 'Technical questions').waitFor();

  await contents(page).getByRole('link', { name: 'What you see on each screen' }).click();
  await page.getByRole('article', { name: 'KV routing' }).getByRole('link', { name: 'Open “KV routing”' }).click();
  await page.getByRole('rowheader', { name: 'First token, when prompts share a prefix' }).waitFor();
});

test('an answer and a term have addresses, and the search stays in sight', { tag: '@path' }, async ({ visit }) => {
  const { page } = await Page.open(await visit(), '/guide#question-grove');
  await page.getByText('Grove is NVIDIA’s addition to Kubernetes').waitFor();
  await contents(page).getByRole('link', { name: 'Glossary' }).click();
  await section(page, 'Glossary').getByRole('link', { name: 'TTFT', exact: true }).click();
  await expect(page).toHaveURL(/\/guide#term-ttft$/);
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

test('texts quote the state as it is', { tag: ['@gate', '@path'] }, async ({ visit }) => {
  const { page } = await Page.open(await visit(), '/guide#question-running');
  const answer = page.locator('#question-running');
  await start();
  const { target } = (await lane()).state.concurrency;
  await expect(answer).toContainText(`with the model, ${target} configured at once`);
  await call('PATCH', '/api/v1/workload', { concurrency: 80 });
  await expect(answer).toContainText('with the model, 80 configured at once');
});
