/** The load generators that hold the conversations for this one. What they tell is put into its snapshots, as it has none itself. */
import { colourViolations, violations } from '../axe.mjs';
import { lastingCuts, SIZES } from '../layout.mjs';
import { expect, Page, section, shoot, test } from './page.mjs';

const client = { verdict: 'ok', reason: '', cpu_ratio: 0.21, lag_seconds: 0.0012 };

const member = (name, change) => ({
  id: `lease-${name}`,
  name,
  version: '0.9.0',
  started: '2026-11-20T09:40:00Z',
  state: 'present',
  conversations: 500,
  client,
  clock_ahead_seconds: 0.0032,
  clock_within_seconds: 0.0004,
  ...change,
});

const one = [member('loadgen-0')];
const two = [member('loadgen-0'), member('loadgen-1', { clock_ahead_seconds: -0.0121 })];
const lateness = 'the load generator itself is 8.4 ms late (p95 of the last 10 s) and uses 97 % of the machine';
const late = member('loadgen-1', {
  state: 'late',
  reason: lateness,
  conversations: 250,
  client: { verdict: 'client_bottleneck', reason: lateness, cpu_ratio: 0.97, lag_seconds: 0.0084 },
});

const [PHONE, , NOTEBOOK] = SIZES;

/** A visitor whose snapshots have members, and what says which: none, at first. */
async function visitMembers(visit) {
  const page = await visit({ browser: {} });
  let members;
  await page.routeWebSocket(/\/api\/v1\/stream$/, (socket) => {
    const server = socket.connectToServer();
    server.onMessage((text) => socket.send(JSON.stringify({ ...JSON.parse(text), members })));
  });
  await Page.open(page);
  return { page, say: (next) => (members = next) };
}

const rows = (page) =>
  section(page, 'Members')
    .getByRole('row')
    .evaluateAll((all) => all.map((row) => [...row.children].map((cell) => cell.textContent)));

test('members have a row each where there are several, and no word where there is one', async ({ visit }) => {
  const { page, say } = await visitMembers(visit);
  await section(page, 'Infrastructure').waitFor();
  await expect(section(page, 'Members')).toHaveCount(0);
  say(two);
  await expect
    .poll(() => rows(page))
    .toEqual([
      ['Member', 'State', 'Conversations', 'Lag p95 of 10 s', 'Clock offset', 'CPU of all cores'],
      ['loadgen-0', 'Present', '500', '1.2 ms', '+3.2 ± 0.4 ms', '21 %'],
      ['loadgen-1', 'Present', '500', '1.2 ms', '−12.1 ± 0.4 ms', '21 %'],
      ['2 members', '2 present', '1,000'],
    ]);
  await expect(page.locator('header').getByText(/^Member/)).toHaveCount(0);
  say(one);
  await expect(section(page, 'Members')).toHaveCount(0);
});

test('a member that is late is named in the header, with the reason below its row', async ({ visit }) => {
  const { page, say } = await visitMembers(visit);
  say([two[0], late]);
  await expect
    .poll(async () => (await rows(page)).slice(2))
    .toEqual([
      ['loadgen-1', 'Late', '250', '8.4 ms', '+3.2 ± 0.4 ms', '97 %'],
      [`Late: ${lateness}.`],
      ['2 members', '1 present, 1 late', '750'],
    ]);
  await page.locator('header').getByText('Member loadgen-1 is late', { exact: true }).waitFor();
  expect(await violations(page, 'body')).toEqual([]);
  for (const [width, height] of [PHONE, NOTEBOOK]) {
    await page.setViewportSize({ width, height });
    expect(await lastingCuts(page, 'body'), `${width} px`).toEqual([]);
  }
  await page.emulateMedia({ colorScheme: 'light' });
  expect(await colourViolations(page, 'body'), 'light').toEqual([]);
  await section(page, 'Members').scrollIntoViewIfNeeded();
  await shoot(page, 'members-light');
});

test('members of a load generator that is lost have no number', async ({ visit }) => {
  const page = await visit({ browser: {} });
  await page.routeWebSocket(/\/api\/v1\/stream$/, (socket) => {
    let told = false; // one snapshot, and then silence
    socket.connectToServer().onMessage((text) => {
      if (!told) {
        told = true;
        socket.send(JSON.stringify({ ...JSON.parse(text), members: two }));
      }
    });
  });
  await Page.open(page);
  await section(page, 'Members').getByText('2 members').waitFor();
  await section(page, 'Members').getByText('No member data: the load generator is unreachable').waitFor();
  await expect(section(page, 'Members').getByRole('table')).toHaveCount(0);
});
