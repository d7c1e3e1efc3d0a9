/** A cluster of SGLang without a Prometheus: what it tells has its place, and what nobody tells is called so. */
import { eventually } from '../booth.mjs';
import { ask, expect, Page, section, sglang, test } from './page.mjs';

const card = (page, name) => section(page, 'Key figures').getByRole('listitem').filter({ hasText: name }).first();
const workers = (page) => section(page, 'Infrastructure').getByRole('list', { name: 'Workers' }).locator('> li');

const lane = async (root) => (await ask(root, 'GET', '/api/v1/snapshot')).lanes[0];

/** Runs a workload on one of the load generators for as long as a visit lasts. */
async function running(root, visit) {
  await ask(root, 'POST', '/api/v1/workload/start', { concurrency: 12 });
  try {
    await eventually('turns that have ended', async () => (await lane(root)).totals.ok > 5, { within: 60_000 });
    await visit();
  } finally {
    await ask(root, 'POST', '/api/v1/workload/stop', { drain: false });
  }
}

test('workers of SGLang, with their GPUs from DCGM pages and no Prometheus', async ({ visit }) => {
  await running(sglang.all, async () => {
    const { page } = await Page.open(await visit({ browser: {} }), '/', sglang.all);
    const { cluster } = await lane(sglang.all);
    expect(cluster.engine).toBe('sglang');
    expect(cluster.source).toBe('direct');
    await eventually('a card each, with its GPU and what SGLang tells', async () => {
      const texts = await workers(page).allInnerTexts();
      return (
        texts.length === 3 &&
        texts.every((text) => /GPU 0\s+\d+ %\s+(low|medium|high) utilisation/.test(text) && !/not reported/.test(text))
      );
    });
    await section(page, 'Infrastructure')
      .getByText(/are assigned to the workers there by index/)
      .waitFor();
    await eventually('the hit rate as the engines count it', async () =>
      /\d %[\s\S]*reported by the engines/.test(await card(page, 'KV cache hit').innerText())
    );
  });
});

test('a hit rate that nobody tells is not 0 %', async ({ visit }) => {
  await running(sglang.blind, async () => {
    const { page } = await Page.open(await visit({ browser: {} }), '/', sglang.blind);
    await eventually('said on the card', async () => {
      const text = await card(page, 'KV cache hit').innerText();
      return (
        /not reported/.test(text) &&
        /The answers do not report cached tokens, and the workers' metrics are not read/.test(text)
      );
    });
    const { kv } = await lane(sglang.blind);
    expect(kv.hit_ratio).toBeUndefined();
    expect(kv.predicted, 'while the router predicts').toBeGreaterThan(0);
    const row = page.getByRole('row', { name: /KV hit rate/ });
    await eventually('and in the comparison', async () => /not reported/.test(await row.first().innerText()));
  });
});
