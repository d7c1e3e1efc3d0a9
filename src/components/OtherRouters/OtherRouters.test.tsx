import { act, screen, within } from '@testing-library/react';

import { Problem, type Shadow } from '../../client';
import { violations } from '../../test/axe';
import { FakeClient } from '../../test/fixtures';
import { renderWith } from '../../test/render';
import { settled } from '../../test/settled';
import { shadow } from './fixtures';
import { OtherRouters } from '.';

async function show(value: Shadow | Problem = shadow()) {
  const client = new FakeClient();
  client.reads.mockImplementation(() => (value instanceof Problem ? Promise.reject(value) : Promise.resolve(value)));
  client.show();
  const result = renderWith(client, <OtherRouters lane="main" />);
  await settled(client, '/shadow?lane=main');
  return result;
}

const row = (name: RegExp) => screen.getByRole('row', { name });

it('shows every policy beside the measurements, and both errors of the model once', async () => {
  const { container } = await show();
  expect(within(row(/^As measured/)).getAllByRole('cell')[0]).toHaveTextContent(/^71\.3 %$/);
  expect(row(/^As measured/)).toHaveTextContent('measured');
  const [hits, prefill, spread] = within(row(/^Round-robin/)).getAllByRole('cell');
  expect(hits).toHaveTextContent(/^31\.0 %$/);
  expect(prefill).toHaveTextContent(/^1,000,500$/);
  expect(spread).toHaveTextContent(/^3\.1$/);
  expect(screen.getByText(/^Cache model: .* differs from the measured one by \+0\.5 points/)).toBeInTheDocument();
  expect(row(/^KV-aware/)).toHaveTextContent('current');
  const [share, evidence] = within(row(/^On another worker/)).getAllByRole('cell');
  expect(share).toHaveTextContent(/^28\.7 %$/);
  expect(evidence).toHaveTextContent('28.7 % were on other workers. See its policy.');
  expect(
    screen.getByText(
      'Worker a computed 90.0 % of the prompt tokens that were not cached. Let the router copy this beginning.'
    )
  ).toBeInTheDocument();
  expect(screen.getByText(/^Parts of the mean TTFT of the last minute, 319 ms/)).toBeInTheDocument();
  expect(within(row(/^Prefill/)).getAllByRole('cell')[0]).toHaveTextContent(/^300 ms$/);
  expect(within(row(/^Best possible/)).getAllByRole('cell')[2]).toHaveTextContent(/^—$/);
  expect(screen.getByRole('list', { name: 'What the figures of lane main show' })).toHaveTextContent(
    'Worker pod-0 was the busiest'
  );
  expect(
    screen.getByText(
      /our choice matched the router’s in 99.0 % of the 600 clear turns \(60.0 % of the last 1,000 turns/
    )
  ).toHaveTextContent('Over all these turns it matched in 90.0 %; 4.0 % were ties.');
  expect(screen.queryByRole('alert')).not.toBeInTheDocument();
  expect(await violations(container)).toEqual([]);
});

it('reports why figures are withheld, and grays them out, except measured ones', async () => {
  await show(shadow({ withheld: 'our account gives 80 %, and 71.3 % was measured', cache_error: 0.087 }));
  expect(screen.getByRole('alert')).toHaveTextContent('Our account gives 80 %, and 71.3 % was measured.');
  expect(row(/^Round-robin/)).toHaveTextContent('unreliable');
  expect(row(/^As measured/)).not.toHaveTextContent('unreliable');
});

it('reports the cost of a source, and what could not be followed or is not known', async () => {
  const { answers_reused: _, cache_error: __, choices: ___, ...rest } = shadow({ lost: 7 });
  await show({ ...rest, source: 'text', message: 'hit rates may be off by about a point more' });
  expect(screen.getByText(/Blocks are derived from the text/)).toHaveTextContent(
    'Hit rates may be off by about a point more.'
  );
  const table = screen.getByRole('columnheader', { name: 'Routing policy' }).closest('table');
  expect(table).toHaveTextContent('7 more could not be tracked');
  expect(table).toHaveTextContent('whether answers are reused from the cache is not known yet');
  expect(screen.getByText(/^The cache model is not checked yet/)).toBeInTheDocument();
});

it.each([
  [shadow({ source: 'none', message: 'shadow.enabled is false' }), 'Shadow.enabled is false.'],
  [shadow({ since: undefined, policies: [] }), /^Settling: the model starts/],
  [shadow({ requests: 0 }), /^Settling: no request has ended/],
])('has no table where there is no account yet (%#)', async (value, words) => {
  await show(value);
  expect(screen.getByText(words)).toBeInTheDocument();
  expect(screen.queryByRole('table')).not.toBeInTheDocument();
});

it('reports why it cannot be read, and shows nothing old during a loss', async () => {
  const { client } = await show(new Problem(503, 'The lane is closed.'));
  expect(screen.getByText('The lane is closed.')).toBeInTheDocument();
  act(() => client.lose());
  expect(screen.getByText('No data on other routers: the load generator is unreachable.')).toBeInTheDocument();
});
