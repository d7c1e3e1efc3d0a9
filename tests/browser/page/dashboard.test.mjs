/** The dashboard: key figures, recorded results and workers, each as its source has it, or with a word of why not. */
import { call, firstTurn, killPart, start, startPart, stop, until } from '../booth.mjs';
import { expect, gone, inGrafanaToo, Page, section, test } from './page.mjs';

/** The texts of the cards by their names. */
async function cards(page) {
  const list = section(page, 'Key figures').getByRole('listitem');
  const texts = await list.evaluateAll((all) => all.map((card) => [...card.children].map((part) => part.textContent)));
  return Object.fromEntries(texts.map(([name, value, meaning, notes]) => [name, { value, meaning, notes }]));
}

const benchmark = (page) =>
  section(page, 'Recorded benchmark')
    .getByRole('table', { name: /latencies level by level$/ })
    .locator('tbody tr');
const workers = (page) => section(page, 'Infrastructure').getByRole('list', { name: 'Workers' }).locator('> li');
const snapshot = async () => (await call('GET', '/api/v1/snapshot')).lanes[0];

test('the key figures are those of the snapshot, over what was recorded', async ({ visit }) => {
  const { page } = await Page.open(await visit({ browser: {} }));
  await until('dashes while stopped', async () => {
    const all = Object.values(await cards(page));
    return all.length === 6 && all.every(({ value }) => value === '—');
  });
  await start();
  await firstTurn();
  await until('a number on every card', async () => {
    const all = Object.values(await cards(page));
    return all.every(({ value }) => /\d/.test(value));
  });
  await until('a request', async () => /[1-9]/.test((await cards(page)).Requests.value));
  const { TOPS, Requests } = await cards(page);
  const { baseline, totals } = await snapshot();
  const [rr] = baseline.columns;
  expect(rr.mode).toBe('round_robin');
  expect(TOPS.notes).toMatch(
    new RegExp(`^RR ${Math.round(rr.output_tokens_per_second.value).toLocaleString('en')} recorded`)
  );
  const shown = Number(Requests.value.replaceAll(',', ''));
  console.log(`${shown} requests shown, ${totals.ok} a moment later`);
  expect(shown > 0 && shown <= totals.ok).toBeTruthy();
  await call('PATCH', '/api/v1/workload', { concurrency: 65 });
  await until('between two levels', async () => /interpolated/.test((await cards(page)).TOPS.notes));
  await call('PATCH', '/api/v1/workload', { concurrency: 300 });
  await until('beyond them', async () => /— outside range/.test((await cards(page)).TOPS.notes));
});

test('errors turn red, and a lost load generator leaves no number', inGrafanaToo, async ({ visit }) => {
  const { page } = await Page.open(await visit({ browser: {}, expected: gone }));
  await start();
  await firstTurn();
  await killPart('cluster');
  await until('errors with their class', async () => {
    const { Errors } = await cards(page);
    return /^[\d,]+ \(should be zero\)$/.test(Errors.value) && /[a-z]/.test(Errors.notes);
  });
  await stop();
  await startPart('cluster');
  await start();
  await killPart('loadgen');
  await until('dashes', async () => Object.values(await cards(page)).every(({ value }) => value === '—'));
  await until('no figure of a worker', async () =>
    (await workers(page).allInnerTexts()).every((text) => /Load generator lost/.test(text) && !/\d %/.test(text))
  );
  await startPart('loadgen');
});

test('the recorded benchmark is the baseline, level by level', async ({ visit }) => {
  const { page } = await Page.open(await visit({ browser: {} }));
  const { baselines } = await call('GET', '/api/v1/baselines');
  const { slider, default_baseline } = await call('GET', '/api/v1/settings');
  const { rows } = baselines.find(({ name }) => name === default_baseline) ?? baselines[0];
  const levels = [...new Set(rows.map(({ concurrency }) => concurrency))].sort((a, b) => a - b);
  const whole = new Set(rows.filter((row) => row.requests_per_second !== undefined).map((row) => row.concurrency));
  const onSlider = levels.filter(
    (level) =>
      level >= slider.min && level <= slider.max && (level - slider.min) % slider.increment === 0 && whole.has(level)
  );
  expect(onSlider).toHaveLength(7);
  const shown = () => benchmark(page).evaluateAll((all) => all.map((row) => parseInt(row.children[0].textContent, 10)));
  await until('the levels of the slider', async () => String(await shown()) === String(onSlider));
  const first = (await benchmark(page).first().innerText()).replace(/\s+/g, ' ');
  for (const mode of ['round_robin', 'kv']) {
    const { ttft } = rows.find((row) => row.concurrency === onSlider[0] && row.mode === mode);
    expect(first.includes((ttft.p50 * 1000).toLocaleString('en', { minimumFractionDigits: 1 })), first).toBeTruthy();
    expect(first.includes((ttft.p95 * 1000).toLocaleString('en', { minimumFractionDigits: 1 })), first).toBeTruthy();
  }
  expect(first).toMatch(/[+−][\d.,]+ %/);
  await page.getByRole('switch', { name: 'All levels' }).click({ force: true });
  await until('all levels', async () => String(await shown()) === String(levels));
  await page.getByRole('img', { name: /^KV hit rate, % by concurrency/ }).waitFor();
  const other = baselines.find(({ name, kind }) => name !== default_baseline && kind === 'recorded');
  await page.getByRole('combobox', { name: 'Baseline' }).click();
  await page.getByRole('option', { name: other.title }).click();
  await until('the other one', async () => (await benchmark(page).count()) !== levels.length);
  await page.getByText('not recorded').first().waitFor();
});

test('the workers are those of the cluster, and say so when Prometheus is gone', async ({ visit }) => {
  const { page } = await Page.open(await visit({ browser: {} }));
  await start();
  await firstTurn();
  const { cluster } = await until('workers', async () => {
    const now = await snapshot();
    return now.cluster.workers.length === 3 && now;
  });
  await until('a card each, with a GPU', async () => {
    const texts = await workers(page).allInnerTexts();
    return (
      texts.length === 3 &&
      texts.every(
        (text, i) =>
          text.startsWith(cluster.workers[i].name) && /GPU 0\s+\d+ %\s+(low|medium|high) utilisation/.test(text)
      )
    );
  });
  await killPart('prometheus');
  await until('told, and no old number', async () => {
    const text = await section(page, 'Infrastructure').innerText();
    return /Prometheus unavailable/.test(text) && !/\d %/.test(text);
  });
  await startPart('prometheus');
  await until('back', async () => /\d %/.test(await section(page, 'Infrastructure').innerText()));
});
