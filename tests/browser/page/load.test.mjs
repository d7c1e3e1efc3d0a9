/** What the load is: opening texts chosen in the controls, and a cap that holds the load back, with its control. */
import { call, start, stateUntil, stop, until } from '../booth.mjs';
import { expect, Page, shoot, test, waits } from './page.mjs';

const MINUTE = 60_000;

const controls = (page) => page.getByRole('region', { name: 'Workload controls' });
const openings = (page) => controls(page).getByRole('group', { name: 'Opening texts' });

test('every conversation has a text of its own where the controls say so', async ({ visit }) => {
  const { page } = await Page.open(await visit({ browser: {} }));
  await start(15);
  const before = await stateUntil('ten texts', ({ shape }) => shape.openings === 10);
  await expect(openings(page).getByRole('button', { name: '10', exact: true })).toHaveAttribute('aria-pressed', 'true');
  await expect(openings(page)).toHaveAccessibleDescription(/every worker soon has in its cache/);

  await openings(page).getByRole('button', { name: 'One each' }).click();
  await stateUntil('a step of its own', ({ shape, step }) => shape.openings === 0 && step.id > before.step.id);
  await expect(openings(page)).toHaveAccessibleDescription(/turn 1 is prefilled in full, and later turns hit/);
  const differences = async () => (await call('GET', '/api/v1/snapshot')).lanes[0].baseline.differences;
  const told = { field: 'openings', live: 'one for each conversation', baseline: '10' };
  await expect.poll(differences).toContainEqual(told);
  await stop();
  await start(15);
  const conversations = await until('fifteen in progress, each on a text of its own', async () => {
    const list = (await call('GET', '/api/v1/conversations?status=active&limit=50')).conversations;
    return list.length === 15 && new Set(list.map(({ starter }) => starter)).size === 15 && list;
  });
  const { text } = await call('GET', `/api/v1/starters/${conversations[0].starter}`);
  expect(text).toContain(conversations[0].starter.slice(-11));
  await shoot(page, 'openings-one-each');

  await openings(page).getByRole('button', { name: '10', exact: true }).click();
  await stateUntil('ten texts again', ({ shape }) => shape.openings === 10);
});

test('a cap that holds the load back says so, with its control beside it', waits, async ({ visit }) => {
  const { page } = await Page.open(await visit({ browser: {} }));
  const { target_rps } = await stateUntil('stopped', ({ phase }) => phase === 'stopped');
  await controls(page).getByRole('button', { name: 'More' }).click();
  await controls(page).getByRole('textbox', { name: 'Request cap (0 = none)' }).fill('2');
  await page.keyboard.press('Enter');
  await stateUntil('the cap', (state) => state.target_rps === 2);
  await controls(page).getByRole('button', { name: 'More' }).click();
  await start();
  await controls(page)
    .getByText(/^Slowed by the cap of 2 requests\/s: \d+ of 60 conversations in progress$/)
    .waitFor({ timeout: MINUTE });
  const { step } = await stateUntil('held', (state) => state.step.held, { within: 3 * MINUTE });
  console.log(`held at ${step.held.at} of 60`);
  expect(step.held.by).toBe('target_rps');
  expect(step.held.at).toBeLessThan(60);
  const notice = controls(page).getByRole('status', {
    name: /^Held at \d+ of 60 conversations by the cap of 2 requests\/s$/,
  });
  await notice.waitFor();
  await shoot(page, 'held-by-the-cap');

  await notice.getByRole('textbox', { name: 'Request cap (0 = none)' }).fill(String(target_rps));
  await page.keyboard.press('Enter');
  await stateUntil('no longer held', (state) => !state.step.held && state.concurrency.actual === 60, {
    within: MINUTE,
  });
  await expect(notice).toBeHidden();
  await stop();
});
