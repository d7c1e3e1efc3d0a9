/** A server of which nobody has told how it routes: the operator is asked once, and nothing is switched. */
import { expect, Page, section, test, untold } from './page.mjs';

test('the operator says the mode that nobody has told', async ({ visit }) => {
  const { page } = await Page.open(await visit({ browser: {} }), '/', untold);
  const controls = section(page, 'Workload controls');
  const question = page.getByText('Which routing mode does this server use now?');
  await question.waitFor();
  await controls.getByText('Mode unknown').waitFor();

  const answers = controls.getByRole('group', { name: 'Routing mode of this server' });
  await answers.getByRole('button', { name: 'Round-robin' }).click();
  await expect(question).toHaveCount(0);
  const inForce = controls.getByRole('group', { name: 'Routing', exact: true });
  await expect(inForce.getByRole('button', { name: 'Round-robin' })).toHaveAttribute('aria-pressed', 'true');
  await page.reload();
  await inForce.waitFor();
  await expect(question, 'not asked again').toHaveCount(0);
  const { events } = await (await fetch(`${untold}/api/v1/events`)).json();
  expect(events[0]).toMatchObject({
    kind: 'mode_change',
    by: 'page',
    text: 'Mode unknown to Round-robin: reported by the operator',
  });
});
