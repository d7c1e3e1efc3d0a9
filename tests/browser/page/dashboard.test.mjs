/** The dashboard: key figures and recorded results, compared with their sources. */
import { call, eventually, faults, firstTurn, start } from '../booth.mjs';
import { expect, gate, Page, section, test } from './page.mjs';

/** The texts of the cards by their names. */
async function cards(page) {
  const list = section(page, 'Key figures').getByRole('listitem');
  const texts = await list.evaluateAll((all) => all.map((card) => [...card.children].map((part) => part.textContent)));
  return Object.fromEntries(texts.map(([name, value, meaning, note]) => [name, { value, meaning, note }]));
}

/** Waits until the three cards satisfy the condition, and returns them. */
const cardsUntil = (page, what, wanted) =>
  eventually(what, async () => {
    const all = await cards(page);
    if (Object.keys(all).length !== 3 || !wanted(all)) {
      throw new Error(JSON.stringify(all));
    }
    return all;
  });

/** The row of output tokens/s, live and recorded. */
const tokens = (page) => section(page, 'Live against baseline').getByRole('row', { name: /^Output tokens\/s/ });

const values = (all) => Object.values(all).map(({ value }) => value);
const benchmark = (page) =>
  section(page, 'Recorded benchmark')
    .getByRole('table', { name: /latencies level by level$/ })
    .locator('tbody tr');
/** Opens the tables of the recorded results. */
const openBenchmark = (page) =>
  section(page, 'Recorded benchmark').getByRole('button', { name: 'Figures of each level' }).click();
const snapshot = async () => (await call('GET', '/api/v1/snapshot')).lanes[0];

test('key figures and errors are those of the snapshot, over what was recorded', gate, async ({ visit }) => {
  const { page } = await Page.open(await visit());
  await cardsUntil(page, 'dashes while stopped', (all) => values(all).every((value) => value === '—'));
  await start();
  const { Requests } = await cardsUntil(page, 'a number on every card', (all) =>
    [...values(all), /[1-9]/.test(all.Requests.value) ? '1' : ''].every((value) => /\d/.test(value))
  );
  const { baseline, totals } = await snapshot();
  const [recorded] = baseline.columns;
  expect(recorded.mode).toBe('round_robin');
  const tops = Math.round(recorded.output_tokens_per_second.value).toLocaleString('en');
  await expect(tokens(page).getByRole('cell').nth(1)).toContainText(tops);
  expect(Number(Requests.value.replaceAll(',', ''))).toBeLessThanOrEqual(totals.ok);

  await call('PATCH', '/api/v1/workload', { concurrency: 65 });
  await expect(tokens(page), 'between two levels').toContainText('interpolated');
  await call('PATCH', '/api/v1/workload', { concurrency: 300 });
  await expect(tokens(page), 'beyond them').toContainText(/—\s*outside range/);
  await faults({ http_500: 1 });
  try {
    await cardsUntil(
      page,
      'errors with their class',
      ({ Errors }) => /^[\d,]+ \(should be zero\)$/.test(Errors.value) && /[a-z]/.test(Errors.note)
    );
  } finally {
    await faults({ http_500: 0 });
  }
});

test('the sentence and the comparison are in the first screen, and the page is short', gate, async ({ visit }) => {
  await start();
  await firstTurn();
  for (const [width, height] of [
    [1440, 900],
    [1920, 1080],
  ]) {
    const booth = await Page.open(await visit({ width, height }));
    await tokens(booth.page).waitFor();
    await booth.settled();
    const result = await section(booth.page, 'Result').boundingBox();
    const tables = await section(booth.page, 'Live against baseline').getByRole('table').last().boundingBox();
    expect(result.y).toBeLessThan(tables.y);
    expect(tables.y + tables.height, `${width} × ${height}`).toBeLessThanOrEqual(height);
    const whole = await booth.page.evaluate(() => document.documentElement.scrollHeight);
    expect(whole, `${width} × ${height}`).toBeLessThanOrEqual(2000);
  }
});

test('the recorded benchmark is the baseline, level by level', gate, async ({ visit }) => {
  const { page } = await Page.open(await visit());
  await openBenchmark(page);
  const { baselines } = await call('GET', '/api/v1/baselines');
  const { slider, default_baseline } = await call('GET', '/api/v1/settings');
  const { rows } = baselines.find(({ name }) => name === default_baseline) ?? baselines[0];
  const levels = [...new Set(rows.map(({ concurrency }) => concurrency))].sort((a, b) => a - b);
  const shown = () => benchmark(page).evaluateAll((all) => all.map((row) => parseInt(row.children[0].textContent, 10)));
  await expect(benchmark(page), 'the levels of the slider').toHaveCount(7);
  expect((await shown())[0]).toBe(slider.min);
  const first = (await benchmark(page).first().innerText()).replace(/\s+/g, ' ');
  for (const mode of ['round_robin', 'kv']) {
    const { ttft } = rows.find((row) => row.concurrency === slider.min && row.mode === mode);
    for (const ms of [ttft.p50 * 1000, ttft.p95 * 1000]) {
      const decimals = ms < 100 ? 1 : 0;
      expect(first).toContain(
        ms.toLocaleString('en', { minimumFractionDigits: decimals, maximumFractionDigits: decimals })
      );
    }
  }
  await page.getByRole('switch', { name: 'All levels' }).click({ force: true });
  await expect.poll(shown).toEqual(levels);
  await page.getByRole('img', { name: /^KV hit rate, % by concurrency/ }).waitFor();
  const other = baselines.find(({ name, kind }) => name !== default_baseline && kind === 'recorded');
  await page.getByRole('combobox', { name: 'Baseline' }).click();
  await page.getByRole('option', { name: other.title }).click();
  await expect(benchmark(page)).not.toHaveCount(levels.length);
  await page.getByText('not recorded').first().waitFor();
});

test('the live curves have a crosshair with values, by pointer and by keys, and zoom by drag', async ({ visit }) => {
  await start();
  await firstTurn();
  const page = await visit();
  await Page.open(page);
  const live = section(page, 'Live');
  const name = /^Output tokens\/s of the last ten minutes, at most [1-9]/;
  const plot = live.getByRole('img', { name }).locator('.u-over');
  // The plot moves while the page fills.
  const pointAt = async (share) => {
    const box = await plot.boundingBox({ timeout: 2000 });
    await page.mouse.move(box.x + share * box.width, box.y + box.height / 2, { steps: 5 });
  };
  const values = page.getByRole('table', { name: /^\d\d:\d\d:\d\d$/ });
  // The first step settles for a minute.
  await eventually('values at the pointer', async () => {
    await pointAt(0.95);
    await expect(values).toContainText(/(KV-aware|settling)[\d,]+/, { timeout: 2000 });
    return true;
  });
  await page.mouse.move(0, 0);
  await expect(values).toHaveCount(0);

  const slider = live.getByRole('slider', { name: 'Output tokens/s of the last ten minutes: read its values' });
  await slider.focus();
  await slider.press('ArrowLeft');
  await expect(values).toContainText(/(KV-aware|settling)[\d,]+/);
  await expect(slider).toHaveAttribute('aria-valuetext', /^\d\d:\d\d:\d\d; (KV-aware|settling) [\d,]+$/);

  await pointAt(0.4);
  await page.mouse.down();
  await pointAt(0.9);
  await page.mouse.up();
  const reset = live.getByRole('button', { name: 'Reset the zoom of Output tokens/s of the last ten minutes' });
  await expect(live.getByRole('button', { name: /^Reset the zoom/ }), 'curves share the zoom').toHaveCount(3);
  await reset.click();
  await expect(reset).toHaveCount(0);
});
