/** An operator at the controls, and what the load generator makes of it. */
import { eventAfter, lane, newestEvent, stateUntil, until } from './booth.mjs';
import { expect, test } from './journey.mjs';
import { Dashboard } from './pages.mjs';

test('Start, 120, round-robin and back, Stop: each in the status and in the events, with the login', async ({
  visit,
}) => {
  const { controls, comparison } = await Dashboard.open(await visit({ login: 'editor' }), 'kvbooth-booth');
  const byEditor = async (what, kind, act, then) => {
    const before = await newestEvent();
    await act();
    await then();
    await eventAfter(before, `${what}, by the editor`, (event) => event.kind === kind && event.by === 'editor');
  };

  await byEditor(
    'start',
    'start',
    () => controls.button('Start').click(),
    () => stateUntil('running', (s) => s.phase === 'running')
  );
  await byEditor(
    '120',
    'step',
    () => controls.slider.fill('120'),
    () => stateUntil('120', (s) => s.concurrency.target === 120)
  );
  await until('the controls show 120', async () => (await controls.figure('Target')) === '120');

  await byEditor(
    'round-robin',
    'mode_change',
    () => controls.button('Round-robin').click(),
    () => stateUntil('round_robin at 120 again', (s) => s.mode === 'round_robin' && s.phase === 'running')
  );
  expect((await lane()).state.concurrency.target, 'the concurrency outlives a change of mode').toBe(120);
  await until('374.7 ms beside it, as recorded', async () =>
    /^374\.7 ms/.test(await comparison.cell('TTFT', 'RR p50'))
  );

  await byEditor(
    'kv',
    'mode_change',
    () => controls.button('KV-aware').click(),
    () => stateUntil('kv again', (s) => s.mode === 'kv' && s.phase === 'running')
  );
  await byEditor(
    'stop',
    'stop',
    () => controls.button('Stop').click(),
    () => stateUntil('stopped', (s) => s.phase === 'stopped')
  );
  await controls.says(/Stopped/);
});
