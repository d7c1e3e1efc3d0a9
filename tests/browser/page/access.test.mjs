/** The permissions with a token, with a public page, and without. */
import { doors, expect, gate, Page, refused, test } from './page.mjs';

const form = (page) => page.locator('input[type="password"]');

async function enter(page, token) {
  await form(page).fill(token);
  await page.keyboard.press('Enter');
}

test('a public page may be read by all, and operated with the token alone', gate, async ({ visit }) => {
  const page = await visit({ browser: {}, expected: refused });
  const booth = await Page.open(page, '/', doors.public);
  await booth.says(/Stopped/);
  await page.locator('header').getByText('Read only').waitFor();
  await expect(booth.button('Start')).toHaveCount(0);
  await expect(booth.slider, 'no slider for who may not move it').toHaveCount(0);
  await page.keyboard.press('s');
  await page.getByRole('region', { name: 'TTFT p95', exact: true }).waitFor();
  await page.keyboard.press('Space');
  await page.getByText('Starting and stopping the workload requires the token.').waitFor();
  await page.keyboard.press('Escape');

  await booth.button('Enter token').click();
  await enter(page, 'not-the-token');
  await page.getByText('The token is wrong.').waitFor();
  await enter(page, doors.token);
  await booth.button('Start').click();
  await booth.says(/Starting|Settling|Running/);
  await booth.button('Stop').click();
  await booth.confirm('Stop');
  await booth.says(/Stopped/);

  await page.reload();
  await booth.button('Sign out').click(); // the browser stores only the session
  await page.locator('header').getByText('Read only').waitFor();
});

test('a page that is not public shows nothing but the form, and opens with the token', gate, async ({ visit }) => {
  const page = await visit({ browser: {}, expected: refused });
  await page.goto(`${doors.closed}/conversations`);
  await form(page).waitFor();
  await expect(page.getByRole('navigation')).toHaveCount(0);
  await enter(page, doors.token);
  const booth = new Page(page);
  await booth.says(/Stopped/);
  await expect(page).toHaveTitle(/^Conversations/);
  const stored = await page.evaluate(() =>
    JSON.stringify([document.cookie, { ...localStorage }, { ...sessionStorage }])
  );
  expect(stored, 'no script gets hold of the token').not.toMatch(new RegExp(doors.token));
  await booth.button('Sign out').click();
  await form(page).waitFor();
  await expect(page.getByRole('navigation')).toHaveCount(0);
});
