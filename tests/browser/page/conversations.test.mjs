/** The conversations: one followed from its first turn to its last, the list with its filters, and a turn that failed. */
import { call, env, firstTurn, killPart, lane, start, startPart, stop, until } from '../booth.mjs';
import { callsTo, expect, inGrafanaToo, Page, test, waits } from './page.mjs';

const table = (page) => page.getByRole('grid', { name: 'Conversations' });
const links = (page) => table(page).getByRole('link');
const rows = (page) => table(page).locator('tbody tr:not([aria-hidden])');
const turns = (page) => page.getByRole('group', { name: /^Transcript/ }).getByRole('listitem');
const chart = (page) => page.getByRole('img', { name: /^TTFT by turn/ });

/** What the load generator itself says of the conversation that is open. */
const stored = (page) => call('GET', `/api/v1/conversations/${new URL(page.url()).pathname.split('/').at(-1)}`);

test('one conversation, followed from its first turn to its last', waits, async ({ visit }) => {
  await call('PATCH', '/api/v1/workload', { turns: { min: 3, max: 3 } });
  await start(12); // few at a time take their turns quickly, and not too quickly to be opened
  const { page } = await Page.open(await visit({ browser: {} }), '/conversations');
  await until('one that has not been going on for long is opened', async () => {
    const first = rows(page).first();
    if (!/Active.*\n?.*[01] of/s.test(await first.innerText({ timeout: 1000 }))) {
      return false;
    }
    await first.getByRole('link').click();
    return true;
  });
  await chart(page).waitFor();
  const seen = new Set();
  const ended = await until(
    'it ends',
    async () => {
      const status = await page.locator('main h2 + [role="status"]').first().innerText();
      seen.add(await turns(page).count());
      return status !== 'Active' && status;
    },
    { within: 60_000, every: 50 }
  );
  const { topic, turns_planned: planned, turns: kept } = await stored(page);
  console.log(`${topic}: ${ended} after ${planned} turns; numbers of turns seen on the way: ${[...seen].join(', ')}`);
  expect(ended).toBe('Completed');
  await expect(turns(page)).toHaveCount(planned);
  expect(seen.size, 'it grew before one’s eyes').toBeGreaterThan(1);
  for (const turn of kept) {
    const text = await turns(page)
      .nth(turn.number - 1)
      .innerText();
    expect(
      text.includes(turn.user_message) && text.includes(turn.assistant_message.trim().slice(0, 20)),
      text
    ).toBeTruthy();
    expect(text).toMatch(/TTFT\s+[\d,.]+ ms/);
    expect(text).toMatch(/[\d,]+ cached \(\d+ %\)/);
    expect(text).toMatch(/dynamo-worker-\d/);
  }
  await expect(chart(page)).toHaveAttribute('aria-label', new RegExp(`turn ${planned} [\\d,]+ ms`));

  await page.getByRole('button', { name: 'Show the article' }).click();
  const article = page.getByRole('group', { name: /^Article: .*, scrollable$/ });
  const { starter } = await stored(page);
  const { text: whole } = await call('GET', `/api/v1/starters/${starter}?lane=main`);
  const plain = whole.replace(/^#{1,6} +(?=.)/gm, '');
  await until('the article, whole', async () => (await article.textContent()) === plain);
  await article.focus();
  await page.keyboard.press('PageDown');
  await until('the keyboard scrolls it', async () => (await article.evaluate((element) => element.scrollTop)) > 0);
  await page.getByRole('button', { name: 'Hide the article' }).click();
  await expect(article).toHaveCount(0);

  const asked = [];
  page.on('request', (request) => asked.push(new URL(request.url()).pathname));
  const { totals } = await lane();
  await until('others go on for three seconds and more', async () => (await lane()).totals.ok > totals.ok + 4); // a little more than one a second
  expect(asked.filter((path) => /conversations\/./.test(path)).length, 'what has ended is not asked for again').toBe(0);
});

test(
  'the list grows on top, keeps the place of who reads, and is filtered by the address',
  inGrafanaToo,
  async ({ visit }) => {
    await start(24); // more than fit, and few enough that the first of them soon make room for new ones
    await firstTurn();
    const { page } = await Page.open(await visit({ browser: {} }), '/conversations');
    await until('more rows than fit', async () => (await rows(page).count()) > 20);

    const box = table(page).locator('..');
    await box.evaluate((element) => (element.scrollTop = 300));
    const news = page.getByRole('button', { name: / new$/ });
    await news.waitFor(); // from here on the list holds still
    const [before, held] = [
      await links(page).evaluateAll((all) => all.map((link) => link.href)),
      await news.innerText(),
    ];
    await until('more of them', async () => (await news.innerText()) !== held);
    expect(await links(page).evaluateAll((all) => all.map((link) => link.href))).toEqual(before);
    await news.click();
    await until('the top', async () => (await box.evaluate((element) => element.scrollTop)) === 0);
    await expect(news).toHaveCount(0);

    await start(60);
    const topic = await until('a topic with several in progress', async () => {
      const { conversations } = await call('GET', '/api/v1/conversations?status=active&limit=100');
      const topics = conversations.map((conversation) => conversation.topic);
      return topics.find((one) => topics.filter((other) => other === one).length > 5); // ten topics share sixty
    });
    await page.getByRole('searchbox', { name: 'Topic' }).fill(topic.toUpperCase());
    await until('that topic alone', async () => {
      const topics = await links(page).allInnerTexts();
      return topics.length > 0 && topics.every((text) => text === topic);
    });
    expect(new URL(page.url()).searchParams.get('topic')).toBe(topic.toUpperCase());

    await page.getByRole('combobox', { name: 'Status' }).click();
    await page.getByRole('option', { name: /^Active/ }).click();
    await page.reload();
    await until('those that are active, after a reload', async () => {
      const texts = await rows(page).allInnerTexts();
      return texts.length > 1 && texts.every((text) => /^Active/.test(text));
    });

    await links(page).first().press('Enter');
    await page.getByRole('link', { name: 'Older →' }).click();
    await page.getByRole('link', { name: 'All conversations' }).click();
    await expect(page).toHaveURL(/\/conversations\?.*status=active/);
  }
);

const MANY = 10_000;

test('ten thousand rows are scrolled through without a stutter', async ({ visit }) => {
  const page = await visit({ browser: {} });
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

/** Scrolls, in the page, until there is a row of this topic, and gives the most rows that there were at once. */
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

/** What a load generator that has very many conversations would answer. */
function manyBehind(url) {
  const params = new URL(url).searchParams;
  const [first, limit] = [Number(params.get('cursor') ?? MANY), Number(params.get('limit'))];
  const conversations = Array.from({ length: Math.min(limit, first) }, (_, i) => {
    const number = first - 1 - i;
    const started = new Date(Date.UTC(2026, 0, 1) + number * 1000).toISOString();
    const lasting = { turns_planned: 4, turns_done: 4, status: 'completed', started, ended: started };
    return {
      id: `many-${number}`,
      lane: 'main',
      number,
      topic: `Topic of number ${number}`,
      starter: 'many',
      ...lasting,
    };
  });
  return { conversations, ...(first > limit && { next_cursor: String(first - limit) }) };
}

test('from the keyboard: through the list, and into a conversation', async ({ visit }) => {
  await start(60);
  await firstTurn();
  await stop();
  const { page } = await Page.open(await visit({ browser: {} }), '/conversations');
  await links(page).first().focus();
  await page.keyboard.press('End');
  const last = await until('the last row', async () => {
    const row = await page.evaluate(() => document.activeElement?.closest('tr')?.getAttribute('aria-rowindex'));
    return Number(row) > 20 && row;
  });
  await page.keyboard.press('ArrowUp');
  await until('the one above', async () =>
    page.evaluate(
      (row) => document.activeElement?.closest('tr')?.getAttribute('aria-rowindex') === String(row),
      last - 1
    )
  );
  await page.keyboard.press('Enter');
  await chart(page).waitFor();
});

test('a turn that failed is marked, with its class and its message', async ({ visit }) => {
  await start(60);
  await firstTurn();
  await killPart('cluster');
  const booth = await Page.open(await visit({ browser: {} }), '/conversations?status=error');
  const { page } = booth;
  await links(page).first().waitFor();
  await stop();
  console.log(await rows(page).first().innerText());
  await links(page).first().click();
  const failed = turns(page).filter({ has: page.getByText(/^Turn \d failed: /) });
  await failed.waitFor();
  const { turns: kept, error_class } = await stored(page);
  expect(error_class).toBeTruthy();
  expect((await failed.innerText()).includes(kept.at(-1).error_message)).toBeTruthy();
  await expect(chart(page)).toHaveAttribute('aria-label', /failed/);
  await expect(failed).toHaveText(/Not counted: it failed/, { useInnerText: true });
  await startPart('cluster');
});

test('a conversation that there is not is said in words', inGrafanaToo, async ({ visit }) => {
  const page = await visit({ browser: {}, expected: [/404 \(Not Found\)/] });
  await Page.open(page, '/conversations/nothing');
  await page.getByText('Conversation not found').waitFor();
  await page.getByRole('link', { name: 'All conversations' }).click();
  await page
    .getByText(/All conversations/)
    .first()
    .waitFor();
});
