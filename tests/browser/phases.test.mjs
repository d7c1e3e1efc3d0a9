/** The dashboard of the demo distinguishes the phases, and keeps each worker's history. */
import { call, firstTurn, start } from './booth.mjs';
import { expect, test } from './journey.mjs';
import { Dashboard } from './pages.mjs';

/** High enough to contain every panel, because others load nothing. */
const WHOLE = { height: 3600 };

/** Results of this test only, one row a phase, so that the panels do not depend on the speed of this machine. */
const PHASES = {
  name: 'phases of a test',
  title: 'Phases of a test',
  kind: 'imported',
  deployment: {},
  rows: [
    row('round_robin', 'off', { ttft: 0.5, tpot: 0.03, itl: 0.028, hits: 0.8 }),
    row('kv', 'off', { ttft: 0.4, tpot: 0.029, itl: 0.027, hits: 0.9 }),
    row('kv', 'draft', { ttft: 0.39, tpot: 0.019, itl: 0.017, hits: 0.91 }),
    row('kv', 'eagle3', { ttft: 0.38, tpot: 0.015, itl: 0.013, hits: 0.92 }),
  ],
};

function row(mode, speculation, { ttft, tpot, itl, hits }) {
  const pair = (p50) => ({ p50, p95: 1.5 * p50 });
  const [latency, tpot_derived] = [pair(20), {}];
  const times = { ttft: pair(ttft), tpot: pair(tpot), itl: pair(itl), latency, tpot_derived };
  return { concurrency: 60, mode, speculation, ...times, kv_hit_ratio: hits };
}

const NAMES = ['phase 1: round-robin', 'phase 2: KV', 'phase 3a: KV, draft model', 'phase 3b: KV, EAGLE-3'];

test(
  'gtc-demo: a line for each phase, the client’s hit rate, the history of the workers',
  { tag: '@gate' },
  async ({ visit }) => {
    await call('POST', '/api/v1/baselines', PHASES);
    const { default_baseline: before } = await call('GET', '/api/v1/settings');
    await call('PATCH', '/api/v1/settings', { default_baseline: PHASES.name });
    try {
      await start();
      await firstTurn();
      const page = await visit({ ...WHOLE, login: 'admin' });
      const demo = await Dashboard.open(page, 'gtc-demo', '?from=now-5m');
      await demo.settle();
      const legend = (title, names) =>
        demo.refreshUntil(`the legend of ${title}`, async () => {
          const text = await demo.panel(title).innerText();
          expect(
            names.filter((name) => !text.includes(name)),
            text
          ).toEqual([]);
        });
      const recorded = (prefix) => NAMES.map((name) => `${prefix} ${name}`);
      for (const title of ['TTFT (p50 and p95)', 'TPOT (p50 and p95)', 'ITL (p50 and p95)']) {
        await legend(title, recorded('Recorded p50'));
      }
      await legend('TTFT p95 (SLO: 600ms)', recorded('Recorded'));
      await legend('KV Cache', [
        ...recorded('Recorded'),
        'KV hit rate',
        'KV hit rate, frontend',
      ]);
      const workers = ['dynamo-worker-1', 'dynamo-worker-2', 'dynamo-worker-3'];
      await legend('KV cache use (per worker)', workers);
      await legend('Engine queue depth (per worker)', workers);
      await legend('GPU memory (per GPU)', ['GPU 0']);
    } finally {
      await call('PATCH', '/api/v1/settings', { default_baseline: before });
    }
  }
);
