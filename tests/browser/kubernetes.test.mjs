/** A presenter switches the routing mode of a Dynamo on Kubernetes, and a switch fails before the crowd. */
import { newestEvent, stateUntil } from './booth.mjs';
import { expect, picture, test } from './journey.mjs';
import { Dashboard } from './pages.mjs';

test('the switch with its steps, and one that fails and is undone', async ({ visit }) => {
  const page = await visit({ login: 'editor' });
  const { controls } = await Dashboard.open(page, 'kvbooth-booth');
  await controls.button('Start').click();
  await stateUntil('running', (s) => s.phase === 'running');

  await controls.button('KV-aware').click();
  const step = page.getByText(/of 3 workers ready/).first();
  await step.waitFor();
  await picture(page, 'grafana-kubernetes-switching');
  await stateUntil('kv, and under way again', (s) => s.mode === 'kv' && s.phase === 'running');
  expect((await newestEvent()).text).toMatch(/round_robin to kv/);
  await picture(page, 'grafana-kubernetes-switched');

  await controls.button('Draft model').click();
  await page.getByText(/going back to kv/).first().waitFor();
  await picture(page, 'grafana-kubernetes-rolling-back');
  const failure = page.getByText(/does not start: (ImagePullBackOff|ErrImagePull)/).first();
  await stateUntil('given up', (s) => s.mode_change?.failed && s.phase === 'running' && s.mode === 'kv');
  await failure.waitFor();
  await picture(page, 'grafana-kubernetes-failed');
  await controls.button('Stop').click();
  await stateUntil('stopped', (s) => s.phase === 'stopped');
});
