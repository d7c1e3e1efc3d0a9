/** The dashboard of the demo tells the phases apart, and keeps each worker's history. */
import fs from 'node:fs/promises';
import path from 'node:path';

import { call, env, start, stateUntil, until } from './booth.mjs';
import { expect, test } from './journey.mjs';
import { Dashboard } from './pages.mjs';

/** High enough for every panel to be in sight: those out of it load nothing. */
const WHOLE = { height: 3600 };

test('gtc-demo: reference lines of every phase, the client’s hit rate, the workers’ history', async ({ visit }) => {
  await measure('off');
  await measure('eagle3');
  try {
    const page = await visit({ ...WHOLE, login: 'admin' });
    const demo = await Dashboard.open(page, 'gtc-demo', '?from=now-5m');
    await demo.settle();
    const legend = (title, names) =>
      until(
        `the legend of ${title}`,
        async () => {
          const text = await demo.panel(title).innerText();
          const missing = names.filter((name) => !text.includes(name));
          expect(missing, text).toEqual([]);
          return true;
        },
        { within: 60_000 }
      );
    const measured = ['Measured here p50 phase 2: KV', 'Measured here p50 phase 3b: KV, EAGLE-3'];
    for (const title of ['ITL (p50 and p95)', 'TTFT (p50 and p95)', 'TPOT (p50 and p95)']) {
      await legend(title, measured);
    }
    await legend('KV Cache', ['Hit rate, measured at the client', 'Frontend counters, cached / input']);
    await legend('KV Cache Occupancy (per worker)', ['dynamo-worker-1', 'dynamo-worker-3']);
    await legend('Engine Queue Depth (per worker)', ['dynamo-worker-1', 'dynamo-worker-3']);
    await legend('GPU Memory (per GPU)', ['GPU 0']);
    await fs.mkdir(env.results, { recursive: true });
    await page.screenshot({ path: path.join(env.results, 'gtc-demo-phases.png') });
  } finally {
    await switchTo('not_recorded');
  }
});

/** Runs with a kind of speculation until a row of it has been kept. */
async function measure(speculation) {
  await switchTo(speculation);
  await start();
  await until(
    `a row with ${speculation}`,
    async () => {
      const { rows } = await call('GET', '/api/v1/baselines/this%20target');
      return rows.some((row) => row.mode === 'kv' && row.speculation === speculation && row.concurrency === 60);
    },
    { within: 180_000, every: 1000 }
  );
}

async function switchTo(speculation) {
  await call('PUT', '/api/v1/cluster/mode', { mode: 'kv', speculation });
  await stateUntil(speculation, (state) => state.speculation === speculation && state.phase !== 'switching', {
    within: 30_000,
  });
}
