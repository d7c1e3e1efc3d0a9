/** The screen for use elsewhere: as a file, as a link, in full screen, and by its title among other tabs. */
import fs from 'node:fs/promises';

import { call, firstTurn, start } from '../booth.mjs';
import { expect, gate, Page, test } from './page.mjs';

test('what is seen goes out as a file and as a link, and its title says the page', gate, async ({ visit }) => {
  await start(20);
  await firstTurn();
  const page = await visit({ browser: { permissions: ['clipboard-read', 'clipboard-write'] } });
  const booth = await Page.open(page, '/conversations?status=active');
  await booth.says(/Starting|Settling|Running/);
  await expect(page).toHaveTitle(/^Conversations · /);

  const given = async (button, item) => {
    await expect(page.getByRole('button', { name: button })).toBeEnabled();
    await page.getByRole('button', { name: button }).press('Enter');
    const download = page.waitForEvent('download');
    await page.getByRole('menuitem', { name: item }).click();
    const file = await download;
    return { name: file.suggestedFilename(), text: await fs.readFile(await file.path(), 'utf8') };
  };
  const list = await given('Export the conversations', 'These conversations as CSV');
  expect(list.name).toMatch(/^kv-booth-conversations-\d{8}T\d{6}Z\.csv$/);
  const [heads, ...rows] = list.text.trimEnd().split('\r\n');
  expect(heads).toBe(
    'id,number,topic,starter,status,error_class,turns_planned,turns_done,started,ended,ttft,kv_hit_ratio,workers'
  );
  expect(rows.length).toBeGreaterThan(0);
  expect(rows.every((row) => row.includes(',active,'))).toBe(true);
  const turns = await given('Export the conversations', 'Every turn as CSV');
  expect(turns.name).toBe('turns.csv');
  expect(turns.text).toMatch(/^lane,/);

  await page.getByRole('button', { name: 'Copy link' }).press('Enter');
  const link = () => page.evaluate(() => navigator.clipboard.readText());
  await expect.poll(link).toBe(page.url());
  expect(page.url()).toMatch(/\?status=active$/);

  await booth.goTo('Dashboard');
  await expect(page).toHaveTitle(/^Dashboard · /);
  const comparison = JSON.parse((await given('Export the comparison', 'Everything as JSON')).text);
  const { lanes } = await call('GET', '/api/v1/snapshot');
  expect(comparison.comparison.name).toBe(lanes[0].baseline.name);
  expect(comparison.comparison.concurrency).toBe(20);
  expect(comparison.client.lag_seconds).toBeGreaterThanOrEqual(0);
  expect((await given('Export the last ten minutes', /CSV/)).text).toMatch(/^time,/);

  await page.getByRole('button', { name: 'Full screen', exact: true }).press('Enter');
  await page.getByRole('button', { name: 'Exit full screen' }).press('Enter');
  await page.getByRole('button', { name: 'Full screen', exact: true }).waitFor();
});
