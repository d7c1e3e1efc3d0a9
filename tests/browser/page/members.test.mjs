/** The members that hold the conversations for this load generator, one of which is late: on a phone, too. */
import { colourViolations, violations } from '../axe.mjs';
import { lastingCuts, SIZES } from '../layout.mjs';
import { expect, Page, section, test } from './page.mjs';

const reason = 'the load generator itself is 8.4 ms late (p95 of the last 10 s) and uses 97 % of the machine';

const member = (name, change) => ({
  id: `lease-${name}`,
  name,
  version: '0.9.0',
  started: '2026-11-20T09:40:00Z',
  state: 'present',
  conversations: 500,
  client: { verdict: 'ok', reason: '', cpu_ratio: 0.21, lag_seconds: 0.0012 },
  clock_ahead_seconds: 0.0032,
  clock_within_seconds: 0.0004,
  ...change,
});

const client = { verdict: 'client_bottleneck', reason, cpu_ratio: 0.97, lag_seconds: 0.0084 };
const members = [member('loadgen-0'), member('loadgen-1', { state: 'late', reason, conversations: 250, client })];

test('a member that is late is named in the header, with the reason below its row', async ({ visit }) => {
  const page = await visit({ browser: {} });
  await page.routeWebSocket(/\/api\/v1\/stream$/, (socket) => {
    const server = socket.connectToServer();
    server.onMessage((text) => socket.send(JSON.stringify({ ...JSON.parse(text), members })));
  });
  await Page.open(page);
  const rows = section(page, 'Members').getByRole('row');
  await expect(rows.nth(2)).toContainText('loadgen-1');
  await expect(rows.nth(3)).toHaveText(`Late: ${reason}.`);
  await page.locator('header').getByText('Member loadgen-1 is late', { exact: true }).waitFor();
  expect(await violations(page, 'body')).toEqual([]);
  for (const [width, height] of [SIZES[0], SIZES[2]]) {
    await page.setViewportSize({ width, height });
    expect(await lastingCuts(page, 'body'), `${width} px`).toEqual([]);
  }
  await page.emulateMedia({ colorScheme: 'light' });
  expect(await colourViolations(page, 'body'), 'light').toEqual([]);
});
