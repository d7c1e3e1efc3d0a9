import React from 'react';
import { act, render, screen, within } from '@testing-library/react';

import { ClientProvider } from '../../client';
import { laneChange, laneOn } from '../../components/Diagram/fixtures';
import { violations } from '../../test/axe';
import { FakeClient, type LaneChange } from '../../test/fixtures';
import { settled } from '../../test/settled';
import { FEATURES, usage } from './features';
import DynamoFeatures from '.';

async function show(lane?: LaneChange) {
  const client = new FakeClient();
  client.reads.mockResolvedValue({ lanes: [{ name: 'main', extensions: { nvext: true }, corpus: {} }] });
  if (lane) {
    client.show(lane);
  }
  const result = render(
    <ClientProvider client={client}>
      <DynamoFeatures />
    </ClientProvider>
  );
  await settled(client, ...(lane ? ['/status'] : []));
  return { client, ...result };
}

const card = (name: string) => within(screen.getByRole('article', { name }));

describe('the features', () => {
  it('say that KV-aware routing is in use, and the others are not, with the reason', async () => {
    const { container } = await show(laneChange(3));
    expect(card('KV-aware routing').getByText('In use here')).toBeInTheDocument();
    expect(card('KV-aware routing').getByText(/mode is KV-aware.*the cluster is simulated/)).toBeInTheDocument();
    for (const name of ['Disaggregated serving', 'KV block manager', 'Planner', 'NIXL']) {
      expect(card(name).getByText('Not in use here')).toBeInTheDocument();
      expect(card(name).getByRole('img')).toHaveAccessibleName(`Drawing: ${name}`);
    }
    expect(await violations(container)).toEqual([]);
  });

  it('follow the mode, and the loss of what tells it', async () => {
    const { client } = await show(laneChange(3, { state: { mode: 'round_robin' } }));
    expect(card('KV-aware routing').getByText('Not in use here')).toBeInTheDocument();
    act(() => client.lose());
    expect(screen.getAllByText('Not known here')).toHaveLength(5);
  });

  it('wait without claiming anything', async () => {
    await show();
    expect(screen.getAllByText('Not known here')).toHaveLength(5);
  });

  it('name the source of each figure, and say where there is none', async () => {
    await show(laneChange(1));
    expect(card('Disaggregated serving').getByText(/NVIDIA benchmarks, as quoted/)).toBeInTheDocument();
    expect(card('Planner').getByText('No published figure here.')).toBeInTheDocument();
    const published = FEATURES.flatMap((f) => f.published);
    expect(published.every((p) => p.source !== '' && /\d/.test(p.figure))).toBe(true);
  });
});

describe('usage', () => {
  it.each([
    ['disaggregated', 'simulated', 'no'],
    ['kvbm', 'mock', 'no'],
    ['planner', 'dynamo', 'unknown'],
    ['nixl', 'plain', 'unknown'],
    ['kv-routing', 'dynamo', 'yes'],
    ['kv-routing', 'mock', 'yes'],
    ['kv-routing', 'plain', 'unknown'],
    ['kv-routing', 'unknown', 'yes'],
  ] as const)('of %s on a %s target: %s', (id, kind, is) => {
    expect(usage(id, laneOn(3), kind)).toMatchObject({ is });
  });

  it('is not known of a target that cannot be reached', () => {
    expect(usage('kv-routing', laneOn(3, { target: { reachable: false } }), 'dynamo')).toMatchObject({
      is: 'unknown',
      why: 'The target cannot be reached.',
    });
  });
});
