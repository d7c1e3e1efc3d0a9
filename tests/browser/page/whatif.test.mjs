/** What if: a question to the simulated cluster, its curves, another preset, and leaving while it computes. */
import { violations } from '../axe.mjs';
import { call, eventually } from '../booth.mjs';
import { lastingCuts } from '../layout.mjs';
import { expect, gate, host, Page, section, test } from './page.mjs';

/** Two levels with one run each: a second of computing. */
const SMALL = 'from=60&to=120&every=60&seeds=1';

const simulations = async () => (await call('GET', '/api/v1/simulations')).simulations;

/** A figure of both modes at the lowest level, as its chart reports it to keyboard users. */
async function read(page, name) {
  const slider = page.getByRole('slider', { name: `${name} by concurrency: read its values` });
  await slider.focus();
  await slider.press('Home');
  const words = await slider.getAttribute('aria-valuetext');
  const value = (mode) => Number(new RegExp(`${mode} simulated ([\\d,.]+)`).exec(words)[1].replace(/,/g, ''));
  return { words, roundRobin: value('Round-robin'), kv: value('KV-aware') };
}

test(
  'a question is answered in curves, a preset asks another, and leaving ends the computing',
  gate,
  async ({ visit }) => {
    const page = await visit();
    const booth = await Page.open(page, `/what-if?${SMALL}`);
    const answer = section(page, 'Simulated');
    const computed = answer.getByText('4 runs computed.');
    await computed.waitFor();
    await expect(answer.getByRole('list', { name: 'Lines' })).toContainText('simulated');
    await expect(answer.getByRole('figure', { name: /simulated$/ })).toHaveCount(6);
    expect((await read(page, 'TTFT p95')).words).toMatch(/^60 conversations; .*Round-robin simulated .* recorded /);

    await page.getByRole('button', { name: 'One document per user' }).click();
    await expect(page).toHaveURL(/from=60/);
    await answer.getByText('The figures below are from the previous question.').waitFor();
    await computed.waitFor();
    const { roundRobin, kv } = await read(page, 'TTFT p50');
    expect(kv, 'an own document is found again only where it is').toBeLessThan(roundRobin);
    await section(page, 'Why the modes cross').getByRole('listitem').first().waitFor();
    await page.setViewportSize({ width: 390, height: 844 });
    await booth.settled();
    expect(await violations(page, host.ours)).toEqual([]);
    expect(await lastingCuts(page, host.ours)).toEqual([]);
    await page.setViewportSize({ width: 1920, height: 1080 });

    await page.goBack();
    await expect(page.getByRole('button', { name: 'As recorded' })).toHaveAttribute('aria-pressed', 'true');
    await computed.waitFor();
    await Page.open(page, '/what-if?from=400&to=1000&every=100&seeds=6');
    const [{ id }] = await eventually('it computes', async () => {
      const all = await simulations();
      return all[0]?.state === 'running' && all[0].of === 84 && all;
    });
    await booth.goTo('Events');
    const left = async () => (await simulations()).find((one) => one.id === id)?.state;
    await expect.poll(left, { message: 'it is cancelled' }).toBe('cancelled');
  }
);
