/** What our panels cost a browser that has nothing else to show. */
import assert from 'node:assert/strict';

import { env, firstTurn, start } from './booth.mjs';
import { journey } from './journey.mjs';
import { Dashboard } from './pages.mjs';

const UID = 'kvbooth-test-own-panels';
const SECONDS = env.bench ? 60 : 10;
const LIMIT = 0.03; // of a core, over a minute on a quiet machine
const SLACK = 3; // for a short measurement on one that does other things too

const authorization = `Basic ${Buffer.from(`admin:${env.password}`).toString('base64')}`;

async function api(method, path, body) {
  const headers = { Authorization: authorization, 'Content-Type': 'application/json' };
  const answer = await fetch(env.grafana + path, { method, headers, body: body && JSON.stringify(body) });
  assert.ok(answer.ok, `${method} ${path}: ${answer.status}`);
}

const panel = (id, type, y, h) => ({
  id,
  type,
  title: type,
  gridPos: { x: 0, y, w: 24, h },
  options: { lane: 'main' },
});

const dashboard = {
  uid: UID,
  title: 'Our own panels',
  panels: [panel(1, 'kvbooth-controls-panel', 0, 10), panel(2, 'kvbooth-comparison-panel', 10, 16)],
};

journey('our panels at one message a second are cheap', async ({ visit, say }) => {
  await api('POST', '/api/dashboards/db', { overwrite: true, dashboard });
  try {
    // Grafana keeps an editor's permissions for a while, without a dashboard that is new.
    const share = await measure(await visit({ login: 'admin' }));
    say(`${(100 * share).toFixed(2)} % of a core over ${SECONDS} s`);
    assert.ok(share < LIMIT * (env.bench ? 1 : SLACK), `${(100 * share).toFixed(2)} % of a core`);
  } finally {
    await api('DELETE', `/api/dashboards/uid/${UID}`);
  }
});

/** The share of a core that the page's main thread takes while the workload runs. */
async function measure(page) {
  await start();
  const { controls } = await Dashboard.open(page, UID);
  await firstTurn();
  await controls.says(/Starting|Settling|Running/);
  const cdp = await page.context().newCDPSession(page);
  await cdp.send('Performance.enable', { timeDomain: 'threadTicks' });
  const spent = async () => {
    const { metrics } = await cdp.send('Performance.getMetrics');
    return metrics.find(({ name }) => name === 'TaskDuration').value;
  };
  const began = { at: Date.now(), spent: await spent() };
  await new Promise((resolve) => setTimeout(resolve, SECONDS * 1000));
  return ((await spent()) - began.spent) / ((Date.now() - began.at) / 1000);
}
