/** The check for a page that is cut off. */
import { cuts } from '../layout.mjs';
import { expect, test } from './page.mjs';

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
