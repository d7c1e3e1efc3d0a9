/** Baselines on the pages: the choice of one, an import with its errors at their line, and the events that tell of it. */
import { call, until } from '../booth.mjs';
import { expect, host, inGrafanaToo, Page, section, shoot, test } from './page.mjs';

const NAME = 'journey';
const TABLE = `# title: Journey's own run
# gpu: L40S
# max_batch_size: 64
concurrency,mode,ttft_p50_ms,ttft_p95_ms,tops
60,round_robin,300,700,1000
60,kv,250,500,1200
80,round_robin,320,800,1100
80,kv,260,650,1300
`;

/** Only the administrator of Grafana may import; on the load generator's address whoever may operate. */
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

test('a baseline is imported, chosen, told of among the events, and deleted', inGrafanaToo, async ({ visit }) => {
  const expected = [/422 \(Unprocessable Entity\)/, /409 \(Conflict\)/];
  const { page } = await Page.open(await visit({ ...importer, expected }));
  const benchmark = section(page, 'Recorded benchmark');
  await benchmark.getByRole('button', { name: 'Import…' }).click();
  const form = page.getByRole('form', { name: 'Import a baseline' });
  const content = form.getByRole('textbox', { name: 'Content' });

  // An error stands at its line.
  await content.fill(TABLE.replace('60,kv,250', '60,KV,250'));
  await form.getByRole('textbox', { name: /^Name/ }).fill(NAME);
  await form.getByRole('button', { name: 'Check' }).click();
  await form.getByText('Error in line 6').waitFor();
  await form.getByText(/line 6, column mode/).waitFor();
  await shoot(page, 'import-error');
  await form.getByRole('button', { name: 'Go to line 6' }).click();
  const selected = await content.evaluate((area) => area.value.slice(area.selectionStart, area.selectionEnd));
  expect(selected).toBe('60,KV,250,500,1200');

  // A recorded one is not to be replaced.
  await content.fill(TABLE);
  await form.getByRole('textbox', { name: /^Name/ }).fill('h200x3-tp1-llama70b-fp8');
  await form.getByRole('button', { name: 'Check' }).click();
  await form.getByText(/cannot be replaced/).waitFor();

  // What was read is seen before it is stored.
  await form.getByRole('textbox', { name: /^Name/ }).fill(NAME);
  await form.getByRole('button', { name: 'Check' }).click();
  const read = form.getByRole('region', { name: 'Preview' });
  await read.getByText(/4 rows, 2 levels from 60 to 80/).waitFor();
  await read
    .getByText(/judged by TTFT alone; TPOT not recorded/)
    .first()
    .waitFor();
  await shoot(page, 'import-preview');
  await expect.poll(async () => (await call('GET', '/api/v1/baselines')).baselines.length).toBeLessThan(4);
  await form.getByRole('button', { name: 'Import', exact: true }).click();
  await form.getByText(`Imported as “${NAME}”.`).waitFor();
  const saved = await call('GET', `/api/v1/baselines/${NAME}`);
  expect(saved.rows).toHaveLength(4);
  expect(saved.deployment).toEqual({ gpu: 'L40S', max_batch_size: 64 });
  await page.keyboard.press('Escape');
  await expect(form).toBeHidden();

  // Chosen by its viewer, and by nobody else.
  const live = section(page, 'Live against baseline');
  await live.getByRole('combobox', { name: 'Compare with' }).click();
  await page
    .getByRole('option', { name: 'Journey’s own run' })
    .or(page.getByRole('option', { name: "Journey's own run" }))
    .click();
  await live.getByText(/Baseline: Journey's own run/).waitFor();
  await shoot(page, 'comparison-chosen');
  const other = await Page.open(await visit({ browser: {} }));
  await section(other.page, 'Live against baseline')
    .getByText(/Baseline:/)
    .waitFor();
  expect(await section(other.page, 'Live against baseline').innerText()).not.toContain("Baseline: Journey's own run");

  // Who did it, and when.
  await Page.open(page, '/events');
  const events = section(page, 'Events');
  const rows = events.locator('tbody tr');
  await until('the import at the top', async () =>
    new RegExp(`Baseline\\s+${by}\\s+imported baseline journey`).test(await rows.first().innerText())
  );
  const kind = events.getByRole('radio', { name: 'Baseline' });
  await until('nothing else', async () => {
    if (!(await kind.isChecked())) {
      await kind.click({ force: true }); // again where the list moved it away from under the pointer
    }
    const texts = await rows.allInnerTexts();
    return texts.length > 0 && texts.every((text) => /baseline/.test(text));
  });
  await shoot(page, 'events');

  // And gone, with the word of it coming by itself.
  await call('DELETE', `/api/v1/baselines/${NAME}`);
  await until('the deletion at the top', async () => /deleted baseline journey/.test(await rows.first().innerText()));
});

test('the deployment stands beside the recorded one', async ({ visit }) => {
  const { page } = await Page.open(await visit({ browser: {} }), '/architecture');
  const table = section(page, 'Deployment').getByRole('table');
  const cells = (name) =>
    table
      .getByRole('row', { name: new RegExp(`^${name}`) })
      .getByRole('cell')
      .allInnerTexts();
  await until('the recorded settings', async () => (await cells('Max num tokens'))[1] === '16,384 tokens');
  expect((await cells('Max batch size'))[1]).toBe('64 sequences');
  expect((await cells('Kubernetes'))[1]).toBe('1.34.1');
  expect((await cells('NVIDIA Dynamo'))[1]).toBe('0.9.0');
  await section(page, 'Deployment').scrollIntoViewIfNeeded();
  await shoot(page, 'deployment');
});

test('what is sustained follows the SLOs', async ({ visit }) => {
  const { slo } = await call('GET', '/api/v1/settings');
  const { page } = await Page.open(await visit({ browser: {} }));
  await page.getByRole('combobox', { name: 'Baseline' }).click();
  await page.getByRole('option', { name: /8× H100/ }).click();
  const line = page.getByRole('group', { name: 'Sustained concurrency' });
  await line.getByText('KV-aware 120 (judged by TTFT alone; TPOT not recorded)').waitFor();
  try {
    await call('PATCH', '/api/v1/settings', { slo: { ttft: 0.4, tpot: 0.06 } });
    await line.getByText('KV-aware 50 (judged by TTFT alone; TPOT not recorded)').waitFor();
    await line.getByText(/Round-robin no level/).waitFor();
    await shoot(page, 'sustained');
  } finally {
    await call('PATCH', '/api/v1/settings', { slo });
  }
});
