/** The cluster behind the workload: its workers, and what they have in their caches. */
import { call, firstTurn, start, until } from './booth.mjs';
import { expect, test } from './journey.mjs';
import { Dashboard } from './pages.mjs';

test('booth: every worker of the cluster, and the hit rate as clients and router see it', async ({ visit }) => {
  await start();
  await firstTurn();
  const booth = await Dashboard.open(await visit({ height: 1600 }), 'kvbooth-booth', '', { refreshes: true });
  const workers = await until('three workers in the cluster', async () => {
    const { workers } = await call('GET', '/api/v1/cluster');
    return workers?.length === 3 && workers;
  });
  const table = booth.panel('Workers');
  for (const { name } of workers) {
    await table.getByText(name, { exact: true }).waitFor();
  }
  const rate = await until(
    'the hit rate on its card',
    async () => {
      const { 'KV Hit, 60 s': text } = await booth.cards();
      return /^\d/.test(text) && parseFloat(text) > 0 && text;
    },
    { within: 60_000 }
  );
  const legend = booth.panel('KV cache hit rate (last 60 s)');
  await until(
    'actual and predicted in the legend',
    async () => {
      const text = await legend.innerText();
      return /Actual/.test(text) && /Predicted/.test(text);
    },
    { within: 60_000 }
  );
  expect(parseFloat(rate), rate).toBeLessThanOrEqual(100);
  console.log(`${workers.map(({ name }) => name).join(', ')}: ${rate}`);
});
