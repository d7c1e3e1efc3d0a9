/** Nothing is cut off: every page, from a phone to a wall, in both colour schemes. */
import { firstTurn, start } from '../booth.mjs';
import { cuts, lastingCuts, SIZES } from '../layout.mjs';
import { addresses, expect, Page, shoot, test } from './page.mjs';

/** What of each page a picture is taken of: a phone's and a laptop's width, each in one scheme. */
const PICTURED = { 390: 'dark', 1440: 'light' };

test('every page is whole, from a phone to a wall, dark and light', async ({ visit }) => {
  await start(20); // below the slider's usual range
  await firstTurn();
  const page = await visit({ browser: {} });
  const faults = [];
  for (const { path, title } of await addresses()) {
    await page.emulateMedia({ colorScheme: 'dark' });
    const booth = await Page.open(page, path);
    await booth.says(/Starting|Settling|Running/);
    for (const colorScheme of ['dark', 'light']) {
      await page.emulateMedia({ colorScheme });
      await booth.settled();
      for (const [width, height] of SIZES) {
        await page.setViewportSize({ width, height });
        const found = await lastingCuts(page, 'body');
        faults.push(...found.map((fault) => `${title}, ${width} px, ${colorScheme}: ${fault}`));
        if (PICTURED[width] === colorScheme) {
          await shoot(page, `cut-${title.toLowerCase().replace(/[^a-z]+/g, '-')}-${width}`, { whole: true });
        }
      }
    }
  }
  expect(faults).toEqual([]);
});

test('what is cut is found, and what is not is left alone', async ({ visit }) => {
  const page = await visit({ width: 400, height: 600, browser: {} });
  const cut = async (html) => {
    await page.setContent(`<body style="margin: 0; font: 16px sans-serif">${html}</body>`);
    return cuts(page, 'body');
  };
  const narrow = 'width: 60px; white-space: nowrap; overflow: hidden';
  const long = 'A text that is too long';
  const wide = '<div style="width: 900px">wide</div>';
  const side = `“${long}” is cut to the side`;
  expect(await cut(`<div style="${narrow}">${long}</div>`)).toEqual([side]);
  expect(await cut(`<div style="${narrow}; text-overflow: ellipsis">${long}</div>`)).toEqual([side]);
  expect(await cut(`<div title="${long}" style="${narrow}; text-overflow: ellipsis">${long}</div>`)).toEqual([]);
  expect(await cut(`<div style="height: 20px; overflow: hidden">One<br>two</div>`)).toEqual([
    '“two” is cut above or below',
  ]);
  expect(await cut('<h2 style="margin: 0">Requests</h2><h2 style="margin: -30px 0 0">TOPS</h2>')).toEqual([
    '“TOPS” and “Requests” overlap',
  ]);
  expect(await cut('<h2>Requests</h2><h2>TOPS</h2>')).toEqual([]);
  expect(await cut('<div style="overflow: clip"><button style="margin-left: 380px">Start</button></div>')).toContain(
    'the control “Start” is cut to the side'
  );
  expect((await cut(wide)).join()).toContain('the page is 500 px wider than the window');
  expect((await cut(`<div style="overflow-x: auto">${wide}</div>`)).join()).toContain('no key reaches it');
  expect(await cut(`<div style="overflow-x: auto" tabindex="0">${wide}</div>`)).toEqual([]);
});
