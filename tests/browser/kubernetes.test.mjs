/** A presenter switches the routing mode of a Dynamo on Kubernetes. One switch succeeds, and one fails. */
import { eventAfter, newestEvent, stateUntil } from './booth.mjs';
import { test } from './journey.mjs';
import { Dashboard } from './pages.mjs';

test('the switch with its steps, and one that fails and is undone', async ({ visit }) => {
  const page = await visit({ login: 'editor' });
  const { controls } = await Dashboard.open(page, 'kvbooth-booth');
  await controls.button('Start').click();
  await stateUntil('running', (s) => s.phase === 'running');

  const before = await newestEvent();
  const confirm = (answer) => page.getByRole('button', { name: `${answer} (Enter)` }).click();
  await controls.button('Round-robin').click();
  await confirm('Change');
  const step = page.getByText(/of 3 workers ready/).first();
  await step.waitFor();
  await stateUntil('round-robin, and under way again', (s) => s.mode === 'round_robin' && s.phase === 'running');
  await eventAfter(before, 'the switch, by the editor', (e) => e.kind === 'mode_change' && e.by === 'editor');

  await controls.button('Draft model').click();
  await confirm('Change');
  await page
    .getByText(/: Rolling back/)
    .first()
    .waitFor();
  const failure = page.getByText(/does not start: (ImagePullBackOff|ErrImagePull)/).first();
  await stateUntil('given up', (s) => s.mode_change?.failed && s.phase === 'running' && s.mode === 'round_robin');
  await failure.waitFor();
  await controls.button('Stop').click();
  await confirm('Stop');
  await stateUntil('stopped', (s) => s.phase === 'stopped');
});
