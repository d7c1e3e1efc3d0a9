/** The app's pages inside Grafana: the same as the load generator's own, with Grafana's navigation around them. */
import { env, firstTurn, start, stateUntil } from './booth.mjs';
import { expect, test } from './journey.mjs';

const APP = '/a/kvbooth-inference-app';
const OPEN_WITHIN = 120_000;

/** Opens a page of the app and waits for its content. */
async function open(page, path) {
  await page.goto(env.grafana + APP + path, { waitUntil: 'domcontentloaded', timeout: OPEN_WITHIN });
  await page.locator('main h2').first().waitFor({ timeout: OPEN_WITHIN });
}

test('links stay inside the app, and breadcrumbs name the page', async ({ visit }) => {
  await start();
  await firstTurn();
  const page = await visit({ login: 'editor' });
  await open(page, '/conversations');
  const crumbs = page.getByRole('navigation', { name: 'Breadcrumbs' });
  await crumbs.getByText('Conversations').waitFor();
  const href = await page.locator(`main a[href*="${APP}/conversations/"]`).first().getAttribute('href');
  await page.locator(`main a[href="${href}"]`).first().click(); // by now others may be above it
  await expect(page).toHaveURL(new RegExp(`${href}$`));
  await page.locator('main h2').first().waitFor();
  await page.goto(`${env.grafana}${APP}/nothing`);
  await page.getByText('Page not found').waitFor();
  await page.getByRole('link', { name: 'Go to dashboard' }).click();
  await expect(page).toHaveURL(new RegExp(`${APP}$`));
});

test('who may operate starts and stops from every page; a viewer is told why not', async ({ visit }) => {
  const page = await visit({ login: 'editor' });
  await open(page, '/guide');
  await page.getByRole('button', { name: 'Start', exact: true }).click();
  await stateUntil('running', (s) => s.running);
  await page.getByRole('button', { name: 'Stop', exact: true }).click();
  await stateUntil('stopped', (s) => s.phase === 'stopped');
  const viewers = await visit({ login: 'viewer' });
  await open(viewers, '/guide');
  await viewers.getByText('Read only', { exact: true }).waitFor();
  await expect(viewers.getByRole('button', { name: 'Start', exact: true })).toHaveCount(0);
});
