/** What if: a question to the simulated cluster, its curves, another preset, and leaving while it computes. */
import { violations } from '../axe.mjs';
import { call, until } from '../booth.mjs';
import { cuts } from '../layout.mjs';
import { expect, host, Page, section, shoot, test } from './page.mjs';

const MINUTE = 60_000;

/** Two levels with one run each: a second of computing. */
const SMALL = 'from=60&to=120&every=60&seeds=1';

const simulations = async () => (await call('GET', '/api/v1/simulations')).simulations;

/** A figure of both modes at the lowest level, as its chart tells it to those who use keys. */
async function read(page, name) {
  const slider = page.getByRole('slider', { name: `${name}: read it at a level` });
  await slider.focus();
  await slider.press('Home');
  const words = await slider.getAttribute('aria-valuetext');
  const value = (mode) => Number(new RegExp(`${mode} simulated ([\\d,.]+) ms`).exec(words)[1].replace(/,/g, ''));
  return { words, roundRobin: value('Round-robin'), kv: value('KV-aware') };
}

test('a what-if question is answered in curves, a preset asks another, and who leaves ends the computing', async ({
  visit,
}) => {
  const page = await visit({ browser: { colorScheme: 'dark' } });
  await Page.open(page, `/what-if?${SMALL}`);
  const answer = section(page, 'Simulated');
  const computed = answer.getByText('4 runs computed.');
  await computed.waitFor({ timeout: MINUTE });
  await expect(answer.getByRole('list', { name: 'Lines' })).toContainText('simulated');
  await expect(answer.getByRole('figure', { name: /simulated$/ })).toHaveCount(6);
  expect((await read(page, 'TTFT p95')).words).toMatch(/^60 conversations; Round-robin simulated .* recorded /);
  await shoot(page, 'what-if-read-at-a-level');

  await page.getByRole('button', { name: 'One document per user' }).click();
  await expect(page).toHaveURL(/from=60/);
  await answer.getByText('The figures below are from the previous question.').waitFor();
  await computed.waitFor({ timeout: MINUTE });
  const { words, roundRobin, kv } = await read(page, 'TTFT p50');
  console.log(words);
  expect(kv, 'an own document is found again only where it is').toBeLessThan(roundRobin);
  await section(page, 'Why the modes cross').getByRole('listitem').first().waitFor();

  await page.goBack();
  await expect(page.getByRole('button', { name: 'As recorded' })).toHaveAttribute('aria-pressed', 'true');
  await computed.waitFor({ timeout: MINUTE });

  await Page.open(page, '/what-if?from=400&to=1000&every=100&seeds=6');
  const [{ id }] = await until('it computes', async () => {
    const all = await simulations();
    return all[0]?.state === 'running' && all[0].of === 84 && all;
  });
  await new Page(page).goTo('Events');
  await until('it is cancelled', async () => (await simulations()).find((one) => one.id === id)?.state === 'cancelled');
});

test('a what-if answer that is kept is there at once, in light colours and on a phone', async ({ visit }) => {
  for (const [name, width, height] of [
    ['light', 1280, 900],
    ['phone', 390, 844],
  ]) {
    const page = await visit({ width, height, browser: { colorScheme: 'light' } });
    const booth = await Page.open(page, `/what-if?${SMALL}`);
    await section(page, 'Simulated').getByText('4 runs computed.').waitFor({ timeout: MINUTE });
    await booth.settled();
    await shoot(page, `what-if-${name}`, { whole: true });
    expect(await booth.overflow(), name).toBe(0);
    expect(await violations(page, host.ours), name).toEqual([]);
    expect(await cuts(page, host.ours), name).toEqual([]);
  }
});
