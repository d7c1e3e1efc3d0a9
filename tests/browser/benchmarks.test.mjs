/** The dashboard Benchmarks, with a sweep that was requested through the API. */
import { call, lane, eventually } from './booth.mjs';
import { expect, test } from './journey.mjs';
import { Dashboard } from './pages.mjs';

/** Turns of a second, so that a span takes seconds. */
const SHORT = { turns: { min: 1, max: 1 }, max_tokens: 16 };

/** Two levels, one span under each mode. */
const TINY = { kind: 'sweep', levels: [4, 8], repeats: 1, warm_up: 0, span: 2, snapshots: 1 };

const ENDS = ['done', 'cancelled', 'failed'];

test('benchmarks: says that there is none, then shows a sweep’s curves and spans, and where it was in time', async ({
  visit,
}) => {
  const { state } = await lane();
  const { turns, max_tokens } = state.shape;
  const modes = ['round_robin', 'kv'].map((mode) => ({ mode, speculation: state.speculation }));
  const page = await visit({ width: 1600, height: 2700 });
  const none = (await call('GET', '/api/v1/sweeps')).sweeps.length === 0;
  const dashboard = await Dashboard.open(page, 'kvbooth-benchmarks', '?from=now-5m');
  if (none) {
    await expect(page.getByText('No trial, sweep or capacity search yet').first()).toBeVisible();
  }
  await call('PATCH', '/api/v1/workload', SHORT);
  const { id } = await call('POST', '/api/v1/sweeps', { ...TINY, modes, title: 'Tiny' });
  try {
    const group = (name) => page.getByRole('group', { name, exact: true });
    const verdict = group('Benchmark verdict');
    // It appears automatically, and grows.
    await expect(verdict.getByRole('heading', { name: 'Tiny' })).toBeVisible();
    await expect(verdict.getByRole('status').filter({ hasText: 'Sweep finished' })).toBeVisible({ timeout: 120_000 });
    const sweep = await call('GET', `/api/v1/sweeps/${id}`);
    expect(ENDS).toContain(sweep.state);

    const curves = group('Benchmark curves');
    await expect(curves.getByRole('img', { name: /^TTFT p95 by concurrency and mode/ })).toBeVisible();
    for (const { concurrency, mode } of sweep.rows) {
      const name = mode === 'kv' ? 'KV-aware' : 'Round-robin';
      await expect(curves.getByRole('row', { name: new RegExp(`^${concurrency} ${name} \\d`) })).toBeVisible();
    }
    expect(sweep.rows.length).toBeGreaterThan(0);
    await expect(group('Benchmark spans').getByRole('row')).toHaveCount(sweep.spans.length + 1);

    // Regions of the sweep and of its spans are on the time series.
    const marks = dashboard.panel('TTFT p95').getByTestId('data-testid annotation-marker');
    await dashboard.refreshUntil('regions on the time series', async () =>
      expect(await marks.count()).toBeGreaterThanOrEqual(3)
    );
    await dashboard.settle();
    // They overlap, out of a pointer's reach, and are drawn anew when more of the answers arrives.
    const words = new Set();
    await eventually(
      'a region of the sweep and of a span under each mode',
      async () => {
        for (const mark of await marks.all()) {
          await mark.dispatchEvent('mouseover', {}, { timeout: 2000 });
          const said = await page.getByText(/^Benchmark: /).allInnerTexts();
          said.forEach((text) => words.add(text.split('\n')[0]));
          await mark.dispatchEvent('mouseout', {}, { timeout: 2000 });
        }
        const wanted = ['sweep', 'KV-aware at 4 conversations', 'round-robin at 4 conversations'];
        const missing = wanted.filter((text) => !words.has(`Benchmark: ${text}`));
        if (missing.length > 0) {
          throw new Error(`missing ${missing.join(', ')}; there are ${[...words].join(', ')}`);
        }
        return true;
      },
      { within: 120_000 }
    );
  } finally {
    await eventually('the lane is as it was', async () => !(await lane()).state.sweep);
    await call('PATCH', '/api/v1/workload', { turns, max_tokens });
  }
});
