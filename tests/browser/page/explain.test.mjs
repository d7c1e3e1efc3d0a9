/** The pages that explain: the drawing of the running parts, and the decisions of the router. */
import { call, eventually, firstTurn, start, stop } from '../booth.mjs';
import { expect, gate, Page, test } from './page.mjs';

async function workers() {
  const { lanes } = await eventually('workers are reported', async () => {
    const snapshot = await call('GET', '/api/v1/snapshot');
    return snapshot.lanes[0].cluster.workers.length > 0 && snapshot;
  });
  return lanes[0].cluster.workers;
}

test('the drawing has every worker and its traffic, and explains what is chosen', gate, async ({ visit }) => {
  await start();
  await firstTurn();
  const names = (await workers()).map(({ name }) => name);
  const page = await visit({ browser: { reducedMotion: 'no-preference' } });
  await Page.open(page, '/architecture');
  const drawing = page.getByRole('group', { name: 'Request path', exact: true });
  const part = (name) => drawing.getByRole('button', { name: new RegExp(`^${name}`) });
  const explanation = page.getByRole('complementary', { name: 'Explanation' });
  const explains = (title) => explanation.getByRole('heading', { name: title, exact: true }).waitFor();

  for (const name of names) {
    await expect(part(name)).toHaveText(/\d+ ?in flight/);
  }
  await expect(drawing.getByRole('button', { name: 'in flight' }), 'and the frontend').toHaveCount(names.length + 1);
  await page.getByTestId('traffic').locator('[data-light="head"]').first().waitFor({ state: 'attached' });

  await part(names[1]).click();
  await explains(names[1]);
  await part('Event plane').focus();
  await page.keyboard.press('Enter');
  await explains('Event plane');
  await page.getByRole('radio', { name: 'Request path' }).focus();
  await page.keyboard.press('ArrowRight');
  await page.getByRole('group', { name: 'The platform', exact: true }).waitFor();
  await expect(explanation, 'what is not beneath it says so').toContainText('simulated');

  await page.getByRole('radio', { name: 'Request path' }).click();
  await stop();
  await expect(page.getByTestId('traffic').locator('circle')).toHaveCount(0);
});

test(
  'a decision is shown with its costs, and the lowest wins; the tree grows',
  { tag: ['@gate', '@path'] },
  async ({ visit }) => {
    await start(20);
    await firstTurn();
    const { decisions } = await call('GET', '/api/v1/decisions?limit=50');
    for (const { chosen, candidates, request_id } of decisions.filter(({ mode }) => mode === 'kv')) {
      expect(candidates[chosen].cost, request_id).toBe(Math.min(...candidates.map(({ cost }) => cost)));
    }

    const page = await visit();
    await Page.open(page, '/kv-routing');
    const list = page.getByRole('table', { name: /^The last \d+ decisions/ });
    await list.getByRole('button').nth(2).click();
    await page.getByRole('button', { name: 'Follow the newest' }).waitFor();
    const detail = page.getByRole('table', { name: 'Every worker as seen by the router' });
    const costs = await detail.locator('tbody tr').evaluateAll((rows) =>
      rows.map((row) => ({
        chosen: /chosen/.test(row.cells[0].innerText),
        cost: Number(/[\d,]+\.\d/.exec(row.cells[3].innerText)[0].replace(/,/g, '')),
      }))
    );
    expect(costs.length).toBe((await workers()).length);
    expect(costs.find(({ chosen }) => chosen).cost).toBe(Math.min(...costs.map(({ cost }) => cost)));
    await page.getByRole('button', { name: 'Follow the newest' }).click();
    await expect(page.getByRole('button', { name: 'Follow the newest' })).toHaveCount(0);

    await page.getByLabel('What round-robin would have done').press('Space');
    const sum = page.getByText('to be computed; round-robin would have left about');
    // First turns cost the same everywhere, so that only load decides. Later turns show the overlap.
    await eventually('kv leaves no more to be computed', async () => {
      const words = (await sum.innerText()).replace(/\s+/g, ' ');
      const [kv, roundRobin] = /left ([\d,]+) to be.*about ([\d,]+) \(estimated\)/
        .exec(words)
        .slice(1)
        .map((n) => Number(n.replace(/,/g, '')));
      if (kv > roundRobin) {
        throw new Error(words);
      }
      return true;
    });
    const tree = page.getByRole('group', { name: 'Prefix tree of a conversation', exact: true });
    await tree
      .getByText(/^Turn \d+ on .* prompt tokens: [\d,]+ cached, [\d,]+ computed/)
      .nth(1)
      .waitFor();
  }
);
