/** The conversations: one from its first turn to its last, and the list with its filters. */
import { call, env, eventually, start } from '../booth.mjs';
import { callsTo, expect, gate, Page, test } from './page.mjs';

const table = (page) => page.getByRole('grid', { name: 'Conversations' });
const links = (page) => table(page).getByRole('link');
const rows = (page) => table(page).locator('tbody tr:not([aria-hidden])');
const turns = (page) => page.getByRole('group', { name: /^Transcript/ }).getByRole('listitem');
const chart = (page) => page.getByRole('img', { name: /^TTFT by turn/ });

/** The load generator's data of the open conversation. */
const stored = (page) => call('GET', `/api/v1/conversations/${new URL(page.url()).pathname.split('/').at(-1)}`);

test('a conversation is read whole, with its article, and grows while it is open', gate, async ({ visit }) => {
  await call('PATCH', '/api/v1/workload', { turns: { min: 1, max: 1 } });
  await start(12);
  const { page } = await Page.open(await visit(), '/conversations?status=completed');
  await links(page).first().click();
  await expect(page.locator('main h2 + [role="status"]').first()).toHaveText('Completed');
  const { starter, turns_planned: planned, turns: kept } = await stored(page);
  await expect(turns(page)).toHaveCount(planned);
  const [shown, last] = [turns(page).last(), kept.at(-1)];
  await expect(shown).toContainText(last.user_message);
  await expect(shown).toContainText(last.assistant_message.trim().slice(0, 20));
  await expect(shown).toHaveText(/TTFT\s+[\d,.]+ ms/, { useInnerText: true });
  await expect(shown).toHaveText(/[\d,]+ cached \([\d.]+ %\)/, { useInnerText: true });
  await expect(shown).toContainText(/dynamo-worker-\d/);
  await expect(chart(page)).toHaveAttribute('aria-label', new RegExp(`turn ${planned} [\\d,.]+ ms`));

  await page.getByRole('button', { name: 'Show the article' }).click();
  const article = page.getByRole('group', { name: /^Article: .*, scrollable$/ });
  const { text } = await call('GET', `/api/v1/starters/${starter}?lane=main`);
  const plain = text.replace(/^#{1,6} +(?=.)/gm, '');
  await eventually('the article, whole', async () => (await article.textContent()) === plain);
  await article.focus();
  await page.keyboard.press('PageDown');
  await eventually('the keyboard scrolls it', () => article.evaluate((element) => element.scrollTop > 0));
  await page.getByRole('button', { name: 'Hide the article' }).click();
  await expect(article).toHaveCount(0);

  await call('PATCH', '/api/v1/workload', { turns: { min: 20, max: 20 } });
  await Page.open(page, '/conversations?status=active');
  await rows(page).filter({ hasText: 'of 20' }).first().getByRole('link').click();
  await turns(page).first().waitFor();
  const before = await turns(page).count();
  await expect.poll(() => turns(page).count(), 'it grows').toBeGreaterThan(before);
});

test(
  'the list grows on top, keeps the place of its reader, and is filtered by the address',
  { tag: '@path' },
  async ({ visit }) => {
    await call('PATCH', '/api/v1/workload', { turns: { min: 1, max: 2 } });
    await start(24); // more than fit, and few enough that the first of them soon make room for new ones
    const { page } = await Page.open(await visit(), '/conversations');
    await eventually('more rows than fit', async () => (await rows(page).count()) > 20);

    const box = table(page).locator('..');
    await box.evaluate((element) => (element.scrollTop = 300));
    const news = page.getByRole('button', { name: / new$/ });
    await news.waitFor(); // from here on the list keeps its position
    const shown = () => links(page).evaluateAll((all) => all.map((link) => link.href));
    const [before, held] = [await shown(), await news.innerText()];
    await expect(news).not.toHaveText(held);
    expect(await shown()).toEqual(before);
    await news.click();
    await eventually('the top', async () => (await box.evaluate((element) => element.scrollTop)) === 0);

    await start(60);
    const topic = await eventually('a topic with several in progress', async () => {
      const { conversations } = await call('GET', '/api/v1/conversations?status=active&limit=100');
      const topics = conversations.map((conversation) => conversation.topic);
      return topics.find((one) => topics.filter((other) => other === one).length > 1); // ten topics share sixty
    });
    await page.getByRole('searchbox', { name: 'Topic' }).fill(topic.toUpperCase());
    await eventually('that topic alone', async () => {
      const topics = await links(page).allInnerTexts();
      return topics.length > 0 && topics.every((text) => text === topic);
    });
    expect(new URL(page.url()).searchParams.get('topic')).toBe(topic.toUpperCase());
    await page.getByRole('combobox', { name: 'Status' }).click();
    await page.getByRole('option', { name: /^Completed/ }).click();
    await page.reload();
    await eventually('several that are completed, after a reload', async () => {
      const texts = await rows(page).allInnerTexts();
      return texts.length > 1 && texts.every((text) => /^Completed/.test(text));
    });

    await links(page).first().press('Enter');
    await page.getByRole('link', { name: 'Older →' }).click();
    await page.getByRole('link', { name: 'All conversations' }).click();
    await expect(page).toHaveURL(/\/conversations\?.*status=completed/);
  }
);

const MANY = 10_000;

test('ten thousand rows are scrolled through without a stutter', async ({ visit }) => {
  const page = await visit();
  await page.route(callsTo('/conversations?'), (route) => route.fulfill({ json: manyBehind(route.request().url()) }));
  await page.addInitScript(() => {
    window.longest = 0;
    new PerformanceObserver((list) => {
      window.longest = Math.max(window.longest, ...list.getEntries().map(({ duration }) => duration));
    }).observe({ type: 'longtask' });
  });
  await Page.open(page, '/conversations');
  await links(page).first().waitFor();
  const most = await table(page).evaluate(scrollDown, 'Topic of number 0');
  const longest = await page.evaluate(() => window.longest);
  console.log(`at most ${most} rows at once, longest task ${longest.toFixed(0)} ms`);
  await expect(table(page)).toHaveAttribute('aria-rowcount', String(MANY + 1));
  expect(most, `${most} rows at once`).toBeLessThan(80);
  if (env.bench) {
    expect(longest, `a task of ${longest} ms`).toBeLessThan(100);
  }
});

/** Scrolls, in the page, until there is a row of this topic, and returns the most rows that were rendered at once. */
async function scrollDown(grid, topic) {
  const box = grid.parentElement;
  window.longest = 0;
  let most = 0;
  while (![...grid.querySelectorAll('a')].some((link) => link.textContent === topic)) {
    box.scrollTop += 12 * box.clientHeight;
    await new Promise(requestAnimationFrame);
    most = Math.max(most, grid.querySelectorAll('tbody tr:not([aria-hidden])').length);
  }
  return most;
}

/** The answer of a load generator with very many conversations. */
function manyBehind(url) {
  const params = new URL(url).searchParams;
  const [first, limit] = [Number(params.get('cursor') ?? MANY), Number(params.get('limit'))];
  const conversations = Array.from({ length: Math.min(limit, first) }, (_, i) => {
    const number = first - 1 - i;
    const started = new Date(Date.UTC(2026, 0, 1) + number * 1000).toISOString();
    const lasting = { turns_planned: 4, turns_done: 4, status: 'completed', started, ended: started };
    const topic = `Topic of number ${number}`;
    return { id: `many-${number}`, lane: 'main', number, topic, starter: 'many', ...lasting };
  });
  return { conversations, ...(first > limit && { next_cursor: String(first - limit) }) };
}
