/** Who may do what: everybody sees, editors operate. */
import { env, eventAfter, lane, newestEvent, start, stateUntil } from './booth.mjs';
import { expect, test } from './journey.mjs';
import { Dashboard, isNumber } from './pages.mjs';

const RESOURCES = '/api/plugins/kvbooth-inference-app/resources';

/** Calls a resource of the app with a visitor's own session. */
const post = (page, path, data) => page.context().request.post(env.grafana + RESOURCES + path, { data });

test('a viewer and an anonymous visitor are refused, and see live numbers and no controls', async ({ visit }) => {
  const [viewer, anybody] = [await visit({ login: 'viewer' }), await visit()];
  for (const page of [viewer, anybody]) {
    const refused = await post(page, '/workload/start', { concurrency: 60 });
    expect(refused.status()).toBe(403);
    expect((await refused.json()).detail).toMatch(/role|Editor/);
  }
  expect((await lane()).state.phase).toBe('stopped');

  // What a viewer sees who has a login, the app's own pages show: see apppages.
  await start();
  const booth = await Dashboard.open(anybody, 'kvbooth-booth');
  await booth.cardsUntil('a number in every card', isNumber);
  await booth.controls.says(/Starting|Settling|Running/);
  await expect(booth.controls.root.getByRole('button'), 'no button').toHaveCount(0);
  await expect(booth.controls.slider, 'no slider').toHaveCount(0);
});

test('an editor may operate, and is named', async ({ visit }) => {
  const page = await visit({ login: 'editor' });
  const before = await newestEvent();
  expect((await post(page, '/workload/start', { concurrency: 70 })).status()).toBe(200);
  await stateUntil('running at 70', (s) => s.phase === 'running' && s.concurrency.target === 70);
  await eventAfter(before, 'a start by the editor', (event) => event.kind === 'start' && event.by === 'editor');
});

test('an editor may not configure', async ({ visit }) => {
  const page = await visit({ login: 'editor' });
  const answer = await page.context().request.patch(`${env.grafana}${RESOURCES}/settings`, { data: { title: 'Mine' } });
  expect(answer.status()).toBe(403);
});
