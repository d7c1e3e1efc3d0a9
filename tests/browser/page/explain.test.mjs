/** The pages that explain: the drawing of what runs, the router's decisions, and what Dynamo offers. */
import { call, firstTurn, start, stateUntil, stop, until } from '../booth.mjs';
import { expect, inGrafanaToo, Page, test } from './page.mjs';

async function workers() {
  const { lanes } = await until('workers are reported', async () => {
    const snapshot = await call('GET', '/api/v1/snapshot');
    return snapshot.lanes[0].cluster.workers.length > 0 && snapshot;
  });
  return lanes[0].cluster.workers;
}

test('the drawing has every worker, and explains what is chosen', async ({ visit }) => {
  await start();
  await firstTurn();
  const names = (await workers()).map(({ name }) => name);
  const page = await visit();
  await Page.open(page, '/architecture');
  const drawing = page.getByRole('group', { name: 'Request path', exact: true });
  const part = (name) => drawing.getByRole('button', { name: new RegExp(`^${name}`) });
  const explanation = page.getByRole('complementary', { name: 'Explanation' });
  const explains = (title) => explanation.getByRole('heading', { name: title, exact: true }).waitFor();

  for (const name of names) {
    await part(name).waitFor();
    await expect(part(name)).toHaveText(/\d+ ?in flight/);
  }
  await expect(drawing.getByRole('button', { name: 'in flight' }), 'and the frontend').toHaveCount(names.length + 1);

  await part(names[1]).click();
  await explains(names[1]);
  await part('Event plane').focus();
  await page.keyboard.press('Enter');
  await explains('Event plane');

  await page.getByRole('radio', { name: 'Request path' }).focus();
  await page.keyboard.press('ArrowRight');
  await page.getByRole('group', { name: 'The platform', exact: true }).waitFor();
  expect(await explanation.innerText(), 'what is not beneath it says so').toMatch(/simulated/);

  await page.getByRole('radio', { name: 'Request path' }).click();
  await stop();
  await page.getByText('Animation paused: the workload is stopped').waitFor();
});

test('requests travel in the drawing while it runs', async ({ visit }) => {
  await start();
  await firstTurn();
  const page = await visit({ browser: { reducedMotion: 'no-preference' } });
  await Page.open(page, '/architecture');
  const dots = page.getByTestId('traffic').locator('circle');
  const lit = page.getByTestId('traffic').locator('[data-light="head"]');
  await until('a lit dot', async () => (await lit.count()) > 0);
  await page.getByText('Dots are a sample, not individual requests').waitFor();
  await stop();
  await until('no dot', async () => (await dots.count()) === 0);
});

test('a decision is told with its costs, and the lowest one wins', inGrafanaToo, async ({ visit }) => {
  await start();
  await firstTurn();
  const { decisions } = await call('GET', '/api/v1/decisions?limit=50');
  for (const { chosen, candidates, request_id } of decisions.filter(({ mode }) => mode === 'kv')) {
    expect(candidates[chosen].cost, request_id).toBe(Math.min(...candidates.map(({ cost }) => cost)));
  }

  const page = await visit();
  await Page.open(page, '/kv-routing');
  const list = page.getByRole('table', { name: /^The last \d+ decisions/ });
  const detail = page.getByRole('table', { name: 'Every worker as seen by the router' });
  await list.getByRole('button').nth(2).click();
  await page.getByRole('button', { name: 'Follow the newest' }).waitFor();
  const costs = await detail.locator('tbody tr').evaluateAll((rows) =>
    rows.map((row) => ({
      chosen: /chosen/.test(row.cells[0].innerText),
      cost: Number(/[\d,]+\.\d/.exec(row.cells[3].innerText)[0].replace(/,/g, '')),
    }))
  );
  expect(costs.length).toBe((await workers()).length);
  expect(costs.find(({ chosen }) => chosen).cost).toBe(Math.min(...costs.map(({ cost }) => cost)));

  await page.getByLabel('What round-robin would have done').check({ force: true });
  const sum = page.getByText('to be computed; round-robin would have left about');
  // First turns cost the same everywhere, so that load alone decides: it takes later turns to show.
  await until(
    'kv leaves no more to be computed',
    async () => {
      const words = (await sum.innerText()).replace(/\s+/g, ' ');
      const [kv, roundRobin] = /left ([\d,]+) to be.*about ([\d,]+) \(estimated\)/
        .exec(words)
        .slice(1)
        .map((n) => Number(n.replace(/,/g, '')));
      if (kv > roundRobin) {
        throw new Error(words);
      }
      console.log(`kv left ${kv} tokens, round-robin would have left about ${roundRobin}`);
      return true;
    },
    { within: 60_000 }
  );
});

test('the prefix tree grows with its conversation', async ({ visit }) => {
  await start();
  await firstTurn();
  const page = await visit();
  await Page.open(page, '/kv-routing');
  const tree = page.getByRole('group', { name: 'Prefix tree of a conversation', exact: true });
  const counted = tree.getByText(/^Turn \d+ on .* prompt tokens: [\d,]+ cached, [\d,]+ computed/);
  await until('two turns', async () => (await counted.count()) >= 2, { within: 60_000 });
});

test('the features follow the routing mode', async ({ visit }) => {
  await start();
  const page = await visit();
  await Page.open(page, '/dynamo-features');
  const routing = page.getByRole('article', { name: 'KV-aware routing' });
  await routing.getByText('In use here', { exact: true }).waitFor();
  await page.getByRole('article', { name: 'Planner' }).getByText('Not in use here').waitFor();
  await call('PUT', '/api/v1/cluster/mode', { mode: 'round_robin' });
  await stateUntil('round-robin', ({ mode, phase }) => mode === 'round_robin' && phase !== 'switching');
  await routing.getByText('Not in use here').waitFor();
});
