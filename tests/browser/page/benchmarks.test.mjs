/** Benchmarks: a short trial from the form to its report and its baseline, and the other controls meanwhile. */
import { violations } from '../axe.mjs';
import { call, eventually, stateUntil } from '../booth.mjs';
import { lastingCuts } from '../layout.mjs';
import { expect, gate, host, Page, section, test } from './page.mjs';

const NAME = 'journey-trial';
const TITLE = 'Trial of a journey';

const sweeps = async () => (await call('GET', '/api/v1/sweeps')).sweeps;
const hasEnded = ({ state }) => ['done', 'cancelled', 'failed'].includes(state);

/** Ends and deletes the trial, so that later journeys can use the workload. */
async function forget() {
  for (const { id } of (await sweeps()).filter((one) => !hasEnded(one))) {
    await call('PATCH', `/api/v1/sweeps/${id}`, { state: 'cancelled' });
  }
  await stateUntil('no sweep has the workload', ({ sweep }) => sweep === undefined);
  for (const { id } of await sweeps()) {
    await call('DELETE', `/api/v1/sweeps/${id}`);
  }
  const { baselines } = await call('GET', '/api/v1/baselines');
  if (baselines.some(({ name }) => name === NAME)) {
    await call('DELETE', `/api/v1/baselines/${NAME}`);
  }
  await call('PATCH', '/api/v1/workload', { max_tokens: 1024, turns: { min: 3, max: 5 }, start_rate: 10 });
}

test.beforeEach(forget);
test.afterEach(forget);

test('a trial is started, watched, ended, reported, and becomes a baseline', gate, async ({ visit }) => {
  // Short answers on texts that no cache has: both modes perform alike, so that nothing is decided soon.
  await call('PATCH', '/api/v1/workload', { max_tokens: 16, turns: { min: 1, max: 1 }, openings: 0, start_rate: 1000 });
  const page = await visit({ browser: { colorScheme: 'dark' } });
  const booth = await Page.open(page, '/benchmarks');
  const form = page.getByRole('form', { name: 'Trial' });
  await form.getByRole('textbox', { name: /^Concurrency/ }).fill('6');
  await form.getByRole('button', { name: 'More settings' }).click();
  await form.getByRole('textbox', { name: /^Span length/ }).fill('2');
  await form.getByRole('textbox', { name: /^Title/ }).fill(TITLE);
  await form.getByRole('button', { name: 'Start the trial' }).click();

  const progress = section(page, 'In progress');
  await progress.getByText(/^Span \d/).waitFor();
  await expect(form).toHaveCount(0);
  await expect(booth.button('Start')).toBeDisabled();

  // A span that the machine spoiled gives no row. The number of spans depends on the load of the machine.
  const [{ id }] = await sweeps();
  const sweep = () => call('GET', `/api/v1/sweeps/${id}`);
  await eventually('a span gave a row', async () => (await sweep()).rows?.length > 0);
  if (await progress.isVisible()) {
    await progress.getByRole('button', { name: 'Cancel' }).click();
    await page.getByRole('button', { name: 'Cancel it' }).click();
  }
  const result = section(page, 'Result');
  await result.getByText(TITLE).first().waitFor();
  const { rows, words } = await eventually('the trial has ended', async () => {
    const now = await sweep();
    return hasEnded(now) && now;
  });
  expect(rows.every(({ concurrency }) => concurrency === 6)).toBe(true);
  await expect(result.getByRole('table').getByRole('row')).toHaveCount(1 + rows.length);
  for (const sentence of words) {
    await result.getByText(sentence, { exact: true }).waitFor();
  }

  const [report] = await Promise.all([
    page.context().waitForEvent('page'),
    result.getByRole('link', { name: 'Open the report' }).click(),
  ]);
  await report.getByRole('heading').first().waitFor();
  await report.close();

  await result.getByRole('button', { name: 'Save as baseline' }).click();
  const baseline = result.getByRole('form', { name: 'Save as baseline' });
  await baseline.getByRole('textbox', { name: /^Name/ }).fill(NAME);
  await baseline.getByRole('button', { name: 'Save baseline' }).click();
  await result.getByText(`“${TITLE}” saved as a baseline`).waitFor();
  const { baselines } = await call('GET', '/api/v1/baselines');
  expect(baselines.find(({ name }) => name === NAME).rows).toHaveLength(rows.length);

  await page.setViewportSize({ width: 390, height: 844 });
  expect(await violations(page, host.ours)).toEqual([]);
  expect(await lastingCuts(page, host.ours)).toEqual([]);
});
