/** Baselines on the pages: an import with an error at its line, the choice of one, and the events of both. */
import { call } from '../booth.mjs';
import { expect, host, Page, section, test } from './page.mjs';

const NAME = 'journey';
const TITLE = 'Run of a journey';
const TABLE = `# title: ${TITLE}
# gpu: L40S
# max_batch_size: 64
concurrency,mode,ttft_p50_ms,ttft_p95_ms,tops
60,round_robin,300,700,1000
60,kv,250,500,1200
80,round_robin,320,800,1100
80,kv,260,650,1300
`;

/** Only the administrator of Grafana may import. On the load generator's address, every operator may. */
const importer = { login: 'admin', browser: {} };
const by = host.alone ? host.by : 'admin';

async function forget() {
  const { baselines } = await call('GET', '/api/v1/baselines');
  if (baselines.some(({ name }) => name === NAME)) {
    await call('DELETE', `/api/v1/baselines/${NAME}`);
  }
}

test.beforeEach(forget);
test.afterEach(forget);

test('a baseline is imported, chosen, and listed among the events', { tag: ['@gate', '@path'] }, async ({ visit }) => {
  const { page } = await Page.open(await visit({ ...importer, expected: [/422 \(Unprocessable Entity\)/] }));
  await section(page, 'Recorded benchmark').getByRole('button', { name: 'Import…' }).click();
  const form = page.getByRole('form', { name: 'Import a baseline' });
  const content = form.getByRole('textbox', { name: 'Content' });

  // An error is shown at its line.
  await content.fill(TABLE.replace('60,kv,250', '60,KV,250'));
  await form.getByRole('textbox', { name: /^Name/ }).fill(NAME);
  await form.getByRole('button', { name: 'Check' }).click();
  await form.getByText(/line 6, column mode/).waitFor();
  await form.getByRole('button', { name: 'Go to line 6' }).click();
  const selected = await content.evaluate((area) => area.value.slice(area.selectionStart, area.selectionEnd));
  expect(selected).toBe('60,KV,250,500,1200');

  // A preview is shown before the baseline is stored.
  await content.fill(TABLE);
  await form.getByRole('button', { name: 'Check' }).click();
  const preview = form.getByRole('region', { name: 'Preview' });
  await preview.getByText(/4 rows, 2 levels from 60 to 80/).waitFor();
  expect((await call('GET', '/api/v1/baselines')).baselines.map(({ name }) => name)).not.toContain(NAME);
  await form.getByRole('button', { name: 'Import', exact: true }).click();
  await form.getByText(`Imported as “${NAME}”.`).waitFor();
  const saved = await call('GET', `/api/v1/baselines/${NAME}`);
  expect(saved.rows).toHaveLength(4);
  expect(saved.deployment).toEqual({ gpu: 'L40S', max_batch_size: 64 });
  await page.keyboard.press('Escape');
  await expect(form).toBeHidden();

  // The choice applies only to this viewer.
  const live = section(page, 'Live against baseline');
  await live.getByRole('combobox', { name: 'Compare with' }).click();
  await page.getByRole('option', { name: TITLE }).click();
  await live.getByText(`Baseline: ${TITLE}`).waitFor();
  const other = await Page.open(await visit({ browser: {} }));
  const theirs = section(other.page, 'Live against baseline');
  await theirs.getByText(/Baseline:/).waitFor();
  await expect(theirs).not.toContainText(TITLE);
  await live.getByRole('combobox', { name: 'Compare with' }).click();
  await page.getByRole('option', { name: 'Default baseline' }).click();
  await expect(live).not.toContainText(`Baseline: ${TITLE}`);

  await Page.open(page, '/events');
  const events = section(page, 'Events');
  const first = events.locator('tbody tr').first();
  await expect(first).toHaveText(new RegExp(`Baseline\\s*${by}\\s*imported baseline ${NAME}`), { useInnerText: true });
  // The list moves the radio button, so a click may miss it.
  await events.getByRole('radio', { name: 'Baseline' }).press('Space');
  await expect(events.locator('tbody tr').filter({ hasNotText: 'baseline' })).toHaveCount(0);
  await call('DELETE', `/api/v1/baselines/${NAME}`);
  await expect(first, 'the news comes by itself').toContainText(`deleted baseline ${NAME}`);
});
