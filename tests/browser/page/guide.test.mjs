/** The presenter's guide: what is searched is found, what was seen is ticked, and numbers are the snapshot's. */
import { call, firstTurn, start, stateUntil, stop, until } from '../booth.mjs';
import { expect, host, inGrafanaToo, Page, section, shoot, test, waits } from './page.mjs';

test('the search narrows questions and terms, from the keyboard', async ({ visit }) => {
  const { page } = await Page.open(await visit({ browser: {} }), '/guide');
  const search = page.getByRole('searchbox', { name: 'Search questions and glossary' });
  const count = page.getByRole('search').getByRole('status');
  const questions = section(page, 'Questions').locator('h4');
  await search.waitFor();
  const all = await questions.count();
  expect(all, `${all} questions`).toBeGreaterThan(10);
  await search.fill('radix');
  await until('one question is left', async () => (await questions.count()) === 1);
  await expect(count).toHaveText(new RegExp(`^1 of ${all} questions`), { useInnerText: true });
  await search.press('ArrowDown');
  await page.keyboard.press('Enter');
  await page.getByText('The lowest cost wins').waitFor();
  await search.press('Escape');
  await until('all are back', async () => (await questions.count()) === all);
});

test('an answer and a term have addresses, and the search stays in sight', inGrafanaToo, async ({ visit }) => {
  const { page } = await Page.open(await visit({ browser: {} }), '/guide?visitor=technical#question-grove');
  await page.getByText('PodCliques').waitFor();
  await expect(page.getByRole('radio', { name: /^Came for the router/ })).toBeChecked();
  await page.getByRole('link', { name: 'TTFT', exact: true }).click();
  await expect(page).toHaveURL(/\?visitor=technical#term-ttft$/);
  const box = await page.getByRole('search').boundingBox();
  const term = await page.locator('#term-ttft').boundingBox();
  expect(box.y >= 0 && box.y + box.height <= term.y, `search at ${box.y}, term at ${term.y}`).toBeTruthy();
  const uncovered = await page.getByRole('search').evaluate((search) => {
    const { left, top } = search.getBoundingClientRect();
    return search.contains(document.elementFromPoint(left + 1, top + 1));
  });
  expect(uncovered, 'nothing lies over the search').toBeTruthy();
});

test(
  'the checklist ticks itself when the workload starts, and keeps it over another page',
  inGrafanaToo,
  async ({ visit }) => {
    const booth = await Page.open(await visit({ browser: {} }), '/guide');
    const { page } = booth;
    const started = section(page, /step by step/).locator('li', { hasText: 'Start the workload' });
    await started.getByText('Press Start.').waitFor();
    await expect(started).toHaveAttribute('data-done', 'false');
    await start();
    await started.getByText(/^Running since .* 60 conversations/).waitFor();
    await expect(started).toHaveAttribute('data-done', 'true');
    await booth.goTo('Conversations');
    await stop();
    await page.goBack();
    await started.getByText(/^Running since/).waitFor();
    await section(page, /step by step/)
      .getByRole('button', { name: 'Reset' })
      .click();
    await started.getByText('Press Start.').waitFor();
  }
);

test('what was steered on another page is recalled', async ({ visit }) => {
  const booth = await Page.open(await visit({ browser: {} }), '/guide');
  const { page } = booth;
  await section(page, /step by step/)
    .getByText('Press Start.')
    .waitFor();
  await booth.goTo('Conversations');
  await start(60);
  await stateUntil('running', ({ running }) => running);
  await call('PATCH', '/api/v1/workload', { concurrency: 80 });
  await until('the step is among the events', async () =>
    (await call('GET', '/api/v1/events?limit=5')).events.some(({ text }) => /80 conversations/.test(text))
  );
  await page.goBack();
  const raised = section(page, /step by step/).locator('li', { hasText: 'Raise the concurrency' });
  await raised.getByText(/^From 60 to 80/).waitFor();
});

test('numbers agree with the snapshots that the page was sent', inGrafanaToo, async ({ visit }) => {
  await start();
  await firstTurn();
  const page = await visit({ browser: {} });
  const sent = snapshotsOf(page);
  await Page.open(page, '/guide#question-slos');
  const answer = page.locator('#question-slos');
  await until('the TTFT of one of the newest snapshots, with a word', async () => {
    const text = await answer.innerText();
    const expected = sent.slice(0, 3).map(({ lanes }) => milliseconds(lanes[0].baseline.live.ttft.p95));
    const shown = expected.find((ms) => new RegExp(`TTFT p95 ${ms}\\s+(live|settling)`).test(text));
    if (!shown) {
      throw new Error(`none of ${expected} is in: ${text}`);
    }
    console.log(shown);
    return true;
  });
  await expect(answer).toHaveText(/at 60\s+configured/, { useInnerText: true });
  await stop();
  await until('no live number is left', async () => /TTFT p95 —\s+stopped/.test(await answer.innerText()));
});

test('the results come from the recorded table, and each screen is explained', async ({ visit }) => {
  const booth = await Page.open(await visit({ browser: {} }), '/guide');
  const { page } = booth;
  const results = section(page, 'The results in plain English');
  await results.getByText(/more tokens a second than round-robin/).waitFor();
  await until('no figure of them is missing', async () => !/—/.test(await results.innerText()));
  expect(await results.locator('[data-word="derived"]').count()).toBeGreaterThan(8);
  const screens = section(page, 'What you see on each screen');
  await screens.getByRole('button', { name: 'KV routing' }).click();
  await screens.getByRole('link', { name: 'Open “KV routing”' }).click();
  await page.getByRole('rowheader', { name: 'First token, when prompts share a prefix' }).waitFor();
  await page.goBack();
  await screens.getByRole('button', { name: /^Grafana: KV-cache-aware routing/ }).click();
  await screens.getByText('TTFT p95 and TPOT p95').waitFor();
  await shoot(booth.page, 'guide-screens', { whole: true });
});

test('the platform told of is that of the vendor in the settings', async ({ visit }) => {
  const { vendor: before } = await call('GET', '/api/v1/settings');
  const { page } = await Page.open(await visit({ browser: {} }), '/guide');
  try {
    for (const [vendor, name] of [
      ['neutral', 'The platform: your own cluster'],
      ['digitalocean', 'The platform: DigitalOcean'],
    ]) {
      await call('PATCH', '/api/v1/settings', { vendor });
      await section(page, name).waitFor();
      await shoot(page, `guide-${vendor}`, { whole: true });
    }
  } finally {
    await call('PATCH', '/api/v1/settings', { vendor: before });
  }
});

test(
  'a phase is ticked by what was measured in it, stands on the features page, and is judged in words',
  waits,
  async ({ visit }) => {
    const page = await visit({ browser: {} });
    const sent = snapshotsOf(page);
    const booth = await Page.open(page, '/guide');
    await call('PUT', '/api/v1/cluster/mode', { mode: 'kv', speculation: 'eagle3' });
    await stateUntil('EAGLE-3', ({ speculation, phase }) => speculation === 'eagle3' && phase !== 'switching');
    try {
      await start();
      const phase = section(page, /step by step/).locator('li', { hasText: 'Phase 3b' });
      await phase.getByText(/^Settling: \d+ s to go/).waitFor({ timeout: 60_000 });
      await expect(phase).toHaveAttribute('data-done', 'true', { timeout: 180_000 });
      await phase.getByText(/median ITL .* Accepted: \d+ % of guesses, \d\.\d\d tokens per step/).waitFor();
      await shoot(booth.page, 'guide-phases', { whole: true });
      await booth.goTo('Dynamo features');
      const row = page.getByRole('rowheader', { name: /^3b ·/ }).locator('xpath=..');
      await row.getByText('current').waitFor();
      await page.getByText(/^Now \d+ % of the drafted tokens are accepted/).waitFor();
      await page.getByText(/Not calibrated: the timing/).waitFor();
      await page.getByRole('article', { name: 'Speculative decoding' }).getByText('In use here').waitFor();
      await row.scrollIntoViewIfNeeded();
      await shoot(booth.page, 'features-phases', { whole: true });
      await booth.goTo('Dashboard');
      await judged(page, sent);
      await shoot(page, 'verdicts');
    } finally {
      await call('PUT', '/api/v1/cluster/mode', { mode: 'kv', speculation: 'not_recorded' });
      await stateUntil('as recorded', ({ speculation, phase }) => speculation !== 'eagle3' && phase !== 'switching');
    }
  }
);

/** The snapshots that a page is sent from here on, the newest first. */
function snapshotsOf(page) {
  const sent = [];
  page.on('websocket', (socket) =>
    socket.on('framereceived', ({ payload }) => sent.unshift(...host.snapshots(payload)))
  );
  return sent;
}

const outcomes = {
  better: / better$/,
  worse: / worse$/,
  no_difference: /no difference shown$/,
  too_variable: /too variable to say$/,
};

/** Waits until the comparison calls a settled step what the load generator does, or nothing while that is the bottleneck. */
async function judged(page, sent) {
  const live = section(page, 'Live against baseline');
  const row = live.getByRole('row', { name: /^Output tokens\/s/ });
  await until('the words of one of the newest snapshots', async () => {
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
    console.log(fits.withheld ?? cells.slice(1).join(' | ').replace(/\s+/g, ' '));
    return true;
  });
}

/** Seconds as the page writes them. */
function milliseconds(seconds) {
  if (seconds === undefined) {
    return 'none';
  }
  const ms = seconds * 1000;
  const decimals = ms < 100 ? 1 : 0;
  return `${ms.toLocaleString('en', { minimumFractionDigits: decimals, maximumFractionDigits: decimals })} ms`;
}
