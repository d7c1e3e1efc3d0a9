/** The dashboards and the app's pages for a visitor, a viewer, an editor and an administrator. */
import { call, env, eventAfter, firstTurn, lane, newestEvent, start, stateUntil } from './booth.mjs';
import { expect, test } from './journey.mjs';
import { Dashboard, isDash, isNumber } from './pages.mjs';

const APP = '/a/kvbooth-inference-app';
const RESOURCES = '/api/plugins/kvbooth-inference-app/resources';

/** Opens a page of the app and waits for its content. */
async function open(page, path) {
  await page.goto(env.grafana + APP + path, { waitUntil: 'domcontentloaded' });
  await page.locator('main h2').first().waitFor();
}

/** Calls a resource of the app with a visitor's own session. */
const post = (page, path, data) => page.context().request.post(env.grafana + RESOURCES + path, { data });

test('the app is enabled by its provisioning, and brings its dashboards', { tag: '@gate' }, async ({ visit }) => {
  const page = await visit({ login: 'admin' });
  const ask = async (path) => (await page.context().request.get(env.grafana + path)).json();
  const settings = await ask('/api/plugins/kvbooth-inference-app/settings');
  expect(settings.enabled).toBe(true);
  expect(settings.jsonData.sidecarUrl).toBe(env.loadgen);
  const found = await ask('/api/search?type=dash-db');
  const uids = found.map(({ uid }) => uid).sort();
  expect(uids).toEqual(['gtc-demo', 'kvbooth-benchmarks', 'kvbooth-booth', 'kvbooth-routers']);
});

test(
  'a viewer and an anonymous visitor are refused, and see live numbers and no controls',
  { tag: ['@gate', '@anywhere'] },
  async ({ visit }) => {
    const [viewer, anonymous] = [await visit({ login: 'viewer' }), await visit()];
    for (const page of [viewer, anonymous]) {
      const refused = await post(page, '/workload/start', { concurrency: 60 });
      expect(refused.status()).toBe(403);
      expect((await refused.json()).detail).toMatch(/role|Editor/);
    }
    expect((await lane()).state.phase).toBe('stopped');
    const booth = await Dashboard.open(anonymous, 'kvbooth-booth');
    await booth.cardsUntil('a dash in every card', isDash);
    await booth.controls.says(/Stopped/);
    await start();
    await booth.cardsUntil('a number in every card', isNumber);
    await booth.controls.says(/Starting|Settling|Running/);
    await expect(booth.controls.root.getByRole('button'), 'no button').toHaveCount(0);
    await expect(booth.controls.slider, 'no slider').toHaveCount(0);
    await open(viewer, '/guide');
    await viewer.getByText('Read only', { exact: true }).waitFor();
    await expect(viewer.getByRole('button', { name: 'Start', exact: true })).toHaveCount(0);
  }
);

test(
  'an editor operates from the panel: Start, 120, round-robin, Stop, each in the events with the login',
  { tag: ['@gate', '@path', '@anywhere'] },
  async ({ visit }) => {
    const page = await visit({ login: 'editor' });
    const { controls, comparison } = await Dashboard.open(page, 'kvbooth-booth');
    const byEditor = async (kind, act, what, wanted) => {
      const before = await newestEvent();
      await act();
      await stateUntil(what, wanted);
      await eventAfter(before, `${what}, by the editor`, (event) => event.kind === kind && event.by === 'editor');
    };
    const press = (name) => () => controls.button(name).click();
    const confirmed = (name, answer) => async () => {
      await controls.button(name).click();
      await page.getByRole('button', { name: `${answer} (Enter)` }).click();
    };
    await byEditor('start', press('Start'), 'running', (s) => s.phase === 'running');
    await byEditor(
      'step',
      () => controls.slider.fill('120'),
      '120',
      (s) => s.concurrency.target === 120
    );
    await expect.poll(() => controls.figure('Target')).toBe('120');
    await byEditor(
      'mode_change',
      confirmed('Round-robin', 'Change'),
      'round-robin at 120',
      (s) => s.mode === 'round_robin' && s.phase === 'running' && s.concurrency.target === 120
    );
    await expect.poll(() => comparison.cell('TTFT', 'RR p50'), 'as recorded').toMatch(/^375 ms/);
    await byEditor('stop', confirmed('Stop', 'Stop'), 'stopped', (s) => s.phase === 'stopped');
    await controls.says(/Stopped/);
  }
);

test('an editor may not configure', { tag: ['@gate', '@path'] }, async ({ visit }) => {
  const page = await visit({ login: 'editor' });
  const answer = await page.context().request.patch(`${env.grafana}${RESOURCES}/settings`, { data: { title: 'Mine' } });
  expect(answer.status()).toBe(403);
});

test(
  'links stay inside the app, breadcrumbs name the page, and a page operates',
  { tag: ['@gate', '@path'] },
  async ({ visit }) => {
    const page = await visit({ login: 'editor' });
    await open(page, '/guide');
    await page.getByRole('button', { name: 'Start', exact: true }).click();
    await stateUntil('running', (s) => s.running);
    await firstTurn();
    await open(page, '/conversations');
    const crumbs = page.getByRole('navigation', { name: 'Breadcrumbs' });
    await crumbs.getByText('Conversations').waitFor();
    const href = await page.locator(`main a[href*="${APP}/conversations/"]`).first().getAttribute('href');
    await page.locator(`main a[href="${href}"]`).first().click(); // others may be above it by this time
    await expect(page).toHaveURL(new RegExp(`${href}$`));
    await page.locator('main h2').first().waitFor();
    await page.goto(`${env.grafana}${APP}/nothing`);
    await page.getByText('Page not found').waitFor();
    await page.getByRole('link', { name: 'Go to dashboard' }).click();
    await expect(page).toHaveURL(new RegExp(`${APP}$`));
  }
);

test(
  'every worker of the cluster, and the hit rate as clients and router see it',
  { tag: '@anywhere' },
  async ({ visit }) => {
    await start();
    const booth = await Dashboard.open(await visit({ height: 1600 }), 'kvbooth-booth', '', { refreshes: true });
    const workers = async () => (await call('GET', '/api/v1/cluster')).workers ?? [];
    await expect.poll(async () => (await workers()).length).toBe(3);
    for (const { name } of await workers()) {
      await booth.panel('Workers').getByText(name, { exact: true }).waitFor();
    }
    const rate = async () => parseFloat((await booth.cards())['KV hit rate, 60 s']);
    await expect.poll(rate).toBeGreaterThan(0);
    expect(await rate()).toBeLessThanOrEqual(100);
    const legend = booth.panel('KV hit rate, 60 s');
    await expect(legend).toContainText('KV hit rate');
    await expect(legend).toContainText('Predicted hit rate');
  }
);
