import { act, screen, within } from '@testing-library/react';
import userEvent from '@testing-library/user-event';

import { violations } from '../../test/axe';
import { FakeClient, headline, member } from '../../test/fixtures';
import { renderWith, texts } from '../../test/render';
import { settled } from '../../test/settled';
import { stubSizes } from '../../test/sizes';
import Dashboard from '.';

jest.mock('../../lib/useNow', () => ({ useNow: () => Date.now(), useAge: () => 0 }));

beforeEach(() => stubSizes());
afterEach(() => jest.restoreAllMocks());

async function show(client: FakeClient) {
  client.reads.mockResolvedValue({ baselines: [] });
  const result = renderWith(client, <Dashboard />, '/');
  await userEvent.click(screen.getByRole('button', { name: 'Figures of each level' }));
  await settled(client, '/baselines');
  return result;
}

const section = (name: string) => within(screen.getByRole('region', { name }));

describe('the dashboard', () => {
  it('has the result in one sentence, and its sections in order, each with a description', async () => {
    const client = new FakeClient();
    client.show();
    const { container } = await show(client);
    expect(container.querySelector('section')).toHaveTextContent(headline().text);
    const names = ['Live against baseline', 'Live', 'Key figures', 'Infrastructure', 'Recorded benchmark'];
    expect(texts(screen.getAllByRole('heading', { level: 2 }))).toEqual(names);
    for (const name of names) {
      expect(section(name).getByRole('button', { name: `About “${name}”` })).toBeInTheDocument();
    }
  });

  it('has the slider and Measure anew, and leaves Start, Stop and the line of state to the header', async () => {
    const client = new FakeClient();
    client.show();
    await show(client);
    const live = section('Live against baseline');
    expect(live.getByRole('slider', { name: 'Concurrency' })).toBeEnabled();
    await userEvent.click(live.getByRole('button', { name: 'Measure anew' }));
    expect(client.writes).toHaveBeenCalledWith('POST', '/workload/measure?lane=main', {});
    expect(live.getAllByRole('table')).toHaveLength(2);
    expect(screen.queryByRole('button', { name: /^(Start|Stop|Drain)$/ })).not.toBeInTheDocument();
    expect(screen.queryByText('Running')).not.toBeInTheDocument();
    act(() => client.lose());
    expect(live.getByRole('slider', { name: 'Concurrency' })).toBeDisabled();
    expect(screen.queryByText('The load generator is unreachable')).not.toBeInTheDocument();
  });

  it('ends with the members where there are several', async () => {
    const client = new FakeClient();
    client.show({}, { members: [member('east-1'), member('west-2')] });
    const { container } = await show(client);
    expect(screen.getAllByRole('heading', { level: 2 }).at(-1)).toHaveTextContent('Members');
    expect(section('Members').getByRole('row', { name: /^west-2 Present 500/ })).toBeInTheDocument();
    expect(await violations(container)).toEqual([]);
  });
});
