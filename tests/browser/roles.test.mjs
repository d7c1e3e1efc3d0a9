/** Who may do what: everybody sees, editors operate. */
import assert from 'node:assert/strict';

import { env, eventAfter, lane, newestEvent, start, stateUntil } from './booth.mjs';
import { journey } from './journey.mjs';
import { Dashboard, isNumber } from './pages.mjs';

const RESOURCES = '/api/plugins/kvbooth-inference-app/resources';

/** Calls a resource of the app with a visitor's own session. */
const post = (page, path, data) => page.context().request.post(env.grafana + RESOURCES + path, { data });

for (const login of [undefined, 'viewer']) {
  journey(`${login ?? 'an anonymous visitor'} sees live numbers and no controls, and is refused`, async ({ visit }) => {
    const page = await visit({ login });
    const refused = await post(page, '/workload/start', { concurrency: 60 });
    assert.equal(refused.status(), 403);
    assert.match((await refused.json()).detail, /role|Editor/);
    assert.equal((await lane()).state.phase, 'stopped');

    await start();
    const booth = await Dashboard.open(page, 'kvbooth-booth');
    await booth.cardsUntil('a number in every card', isNumber, 30_000);
    await booth.controls.says(/Starting|Settling|Running/);
    assert.equal(await booth.controls.root.getByRole('button').count(), 0, 'no button');
    assert.equal(await booth.controls.slider.count(), 0, 'no slider');
  });
}

journey('an editor may operate, and is named', async ({ visit }) => {
  const page = await visit({ login: 'editor' });
  const before = await newestEvent();
  assert.equal((await post(page, '/workload/start', { concurrency: 70 })).status(), 200);
  await stateUntil('running at 70', (s) => s.phase === 'running' && s.concurrency.target === 70);
  await eventAfter(before, 'a start by the editor', (event) => event.kind === 'start' && event.by === 'editor');
});

journey('an editor may not configure', async ({ visit }) => {
  const page = await visit({ login: 'editor' });
  const answer = await page.context().request.patch(`${env.grafana}${RESOURCES}/settings`, { data: { title: 'Mine' } });
  assert.equal(answer.status(), 403);
});
