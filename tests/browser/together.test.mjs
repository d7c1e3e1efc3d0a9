/** Two who look at the same booth. How far apart they are is printed: a second is the aim, on a machine that has nothing else to do. */
import { env, start, until } from './booth.mjs';
import { expect, test } from './journey.mjs';
import { Dashboard, isDash, isNumber } from './pages.mjs';

/** Notes in a page when each text of the card Requests and of the state came first. */
function watch(page) {
  return page.evaluate(() => {
    window.seen = {};
    const look = () => {
      const cards = document.querySelector('[data-viz-panel-key="panel-1"]').innerText.split('\n');
      const requests = cards[cards.indexOf('Requests') + 1];
      const state = document.querySelector('section[aria-label="Workload controls"] [role="status"]').innerText;
      for (const key of [`requests ${requests}`, `state ${state}`]) {
        window.seen[key] ??= Date.now();
      }
    };
    setInterval(look, 50);
  });
}

test('two browsers show the same: dashes before Start, then the same numbers', async ({ visit }) => {
  const pages = [await visit({ login: 'editor', width: 1280, height: 720 }), await visit({ width: 1280, height: 720 })];
  const booths = await Promise.all(pages.map((page) => Dashboard.open(page, 'kvbooth-booth')));
  await Promise.all(booths.map(({ controls }) => controls.says(/Stopped/)));
  await booths[0].cardsUntil('a dash in every card', isDash);
  await Promise.all(pages.map(watch));
  await start();
  const seen = () => Promise.all(pages.map((page) => page.evaluate(() => window.seen)));
  const common = await until('six figures that both have shown', async () => {
    const [a, b] = await seen();
    const keys = Object.keys(a).filter((key) => key in b);
    const enough =
      keys.filter((key) => isNumber(key.replace('requests ', ''))).length >= 6 && keys.includes('state Starting');
    return enough && keys.map((key) => [key, Math.abs(a[key] - b[key])]);
  });
  await booths[0].cardsUntil('a number in every card', isNumber);
  const apart = common.slice(2).sort((x, y) => y[1] - x[1]); // not what was there before they both looked
  console.log(`at most ${apart[0][1]} ms apart: ${apart[0][0]}`);
  expect(apart[0][1], `${apart[0][0]}: ${apart[0][1]} ms apart`).toBeLessThanOrEqual(env.bench ? 1000 : 5000);
});
