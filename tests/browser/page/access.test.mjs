/** Who may do what: with a token, with a public page, and without. */
import assert from 'node:assert/strict';

import { journey } from '../journey.mjs';
import { doors, Page, refused } from './page.mjs';

const form = (page) => page.locator('input[type="password"]');

async function enter(page, token) {
  await form(page).fill(token);
  await page.keyboard.press('Enter');
}

journey('a public page may be read by all, and operated with the token alone', async ({ visit }) => {
  const page = await visit({ browser: {}, expected: refused });
  const booth = await Page.open(page, '/', doors.public);
  await booth.says(/Stopped/);
  await page.locator('header').getByText('Read only').waitFor();
  assert.equal(await booth.button('Start').count(), 0);
  assert.equal(await booth.slider.count(), 0, 'no slider for who may not move it');

  await booth.button('Enter token').click();
  await enter(page, 'not-the-token');
  await page.getByText('The token is wrong.').waitFor();
  await enter(page, doors.token);
  await booth.button('Start').waitFor();
  await booth.button('Start').click();
  await booth.says(/Starting|Settling|Running/);
  await booth.button('Stop').click();
  await booth.says(/Stopped/);

  await page.reload();
  await booth.button('Sign out').click(); // the browser remembers the session, and nothing else
  await page.locator('header').getByText('Read only').waitFor();
});

journey('a page that is not public shows nothing but the form, and opens with the token', async ({ visit }) => {
  const page = await visit({ browser: {}, expected: refused });
  await page.goto(`${doors.closed}/conversations`);
  await form(page).waitFor();
  assert.equal(await page.getByRole('navigation').count(), 0);
  await enter(page, 'not-the-token');
  await page.getByText('The token is wrong.').waitFor();
  await enter(page, doors.token);
  const booth = new Page(page);
  await booth.says(/Stopped/);
  assert.match(await page.title(), /^Conversations/, 'the page that was asked for');
  const stored = await page.evaluate(() =>
    JSON.stringify([document.cookie, { ...localStorage }, { ...sessionStorage }])
  );
  assert.doesNotMatch(stored, new RegExp(doors.token), 'no script gets hold of the token');
  await booth.button('Sign out').click();
  await form(page).waitFor();
  assert.equal(await page.getByRole('navigation').count(), 0);
});
