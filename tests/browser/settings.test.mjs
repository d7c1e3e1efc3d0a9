/** The app's configuration, and the panels that follow it. */
import { call, env, killPart, startPart, until } from './booth.mjs';
import { expect, test } from './journey.mjs';
import { ConfigPage, Dashboard } from './pages.mjs';

test('a wrong token is told in words, here and in the panels, which go on with the right one', async ({ visit }) => {
  const { controls } = await Dashboard.open(await visit(), 'kvbooth-booth');
  await controls.says(/Stopped/);
  const config = await ConfigPage.open(
    await visit({ login: 'admin', expected: [/\/(health|resources\/(settings|baselines))\)$/] })
  );
  expect(await config.test()).toMatch(/The connection works.*Load generator .* answers at/);

  await config.enterToken('wrong');
  expect(await config.save()).toMatch(/does not work.*token/i);
  await controls.says(/Load generator lost/);
  await until('the panel names the token', async () => /token/i.test(await controls.root.innerText()));

  await config.enterToken(env.token);
  expect(await config.save()).toMatch(/The connection works/);
  await controls.says(/Stopped/);
});

test('a dead load generator is told in words', async ({ visit }) => {
  const config = await ConfigPage.open(
    await visit({ login: 'admin', expected: [/400 .*\/health\)$/, /50[234] .*\/resources\//] })
  );
  await config.loadgen.waitFor();
  await killPart('loadgen');
  expect(await config.test()).toMatch(/does not work.*(reach|refused|answer)/i);
  await startPart('loadgen');
  expect(await config.test()).toMatch(/The connection works/);
});

test('a setting of the load generator is saved, and the panels follow', async ({ visit }) => {
  const booth = await Dashboard.open(await visit(), 'kvbooth-booth');
  const shows = (text) => until(text, async () => (await booth.comparison.root.innerText()).includes(text));
  await shows('TTFT p95 ≤ 600 ms');
  const config = await ConfigPage.open(await visit({ login: 'admin' }));
  try {
    await config.loadgen.getByLabel('SLO of TTFT p95').fill('700');
    await config.loadgen.getByRole('button', { name: 'Save' }).click();
    await shows('TTFT p95 ≤ 700 ms');
  } finally {
    await call('PATCH', '/api/v1/settings', { slo: { ttft: 0.6, tpot: 0.06 } });
  }
});

test('unsaved changes are not left behind without a question', async ({ visit }) => {
  const page = await visit({ login: 'admin' });
  const config = await ConfigPage.open(page);
  await config.url.fill('http://127.0.0.1:1');
  await page.getByRole('link', { name: 'Home' }).first().click();
  await page.getByText('Leave without saving?').waitFor();
  await page.getByRole('button', { name: 'Stay' }).click();
  await expect(config.url).toHaveValue('http://127.0.0.1:1');
  await config.connection.getByRole('button', { name: 'Discard changes' }).click();
  await expect(config.url).toHaveValue(env.loadgen);
});
