import { act, screen, within } from '@testing-library/react';

import type { Baseline } from '../../client';
import { laneChange, laneOn } from '../../components/Diagram/fixtures';
import { violations } from '../../test/axe';
import { emptyRow, FakeClient, type LaneChange } from '../../test/fixtures';
import { renderWith } from '../../test/render';
import { settled } from '../../test/settled';
import { FEATURES, usage } from './features';
import DynamoFeatures from '.';

async function show(lane?: LaneChange, baselines: Baseline[] = []) {
  const client = new FakeClient();
  client.reads.mockImplementation((path) =>
    Promise.resolve(
      path === '/baselines' ? { baselines } : { lanes: [{ name: 'main', extensions: { nvext: true }, corpus: {} }] }
    )
  );
  if (lane) {
    client.show(lane);
  }
  const result = renderWith(client, <DynamoFeatures />);
  await settled(client, '/baselines', ...(lane ? ['/status'] : []));
  return result;
}

const card = (name: string) => within(screen.getByRole('article', { name }));

describe('the features', () => {
  it('show KV-aware routing as in use, and the others as not, with the reason', async () => {
    const { container } = await show(laneChange(3));
    expect(card('KV-aware routing').getByText('In use here')).toBeInTheDocument();
    expect(card('KV-aware routing').getByText(/mode is KV-aware.*the cluster is simulated/)).toBeInTheDocument();
    for (const name of ['Disaggregated serving', 'KV block manager', 'Planner', 'NIXL']) {
      expect(card(name).getByText('Not in use here')).toBeInTheDocument();
      expect(card(name).getByRole('img')).toHaveAccessibleName(`Diagram: ${name}`);
    }
    expect(await violations(container)).toEqual([]);
  });

  it('follow the mode, and the loss of its source', async () => {
    const { client } = await show(laneChange(3, { state: { mode: 'round_robin' } }));
    expect(card('KV-aware routing').getByText('Not in use here')).toBeInTheDocument();
    act(() => client.lose());
    expect(screen.getAllByText('Unknown here')).toHaveLength(6);
  });

  it('make no statement on a mode that is not reported, and name the source of one', async () => {
    const { client } = await show(laneChange(3, { state: { mode: 'unknown', driver: 'manual' } }));
    expect(card('KV-aware routing').getByText('Unknown here')).toBeInTheDocument();
    expect(card('KV-aware routing').getByText(/The routing mode of this server has not been set/)).toBeInTheDocument();
    act(() => client.show(laneChange(3, { state: { driver: 'manual', mode_from: 'operator' } })));
    expect(card('KV-aware routing').getByText(/as the operator reports/)).toBeInTheDocument();
    act(() => client.show(laneChange(3, { state: { driver: 'manual', mode_from: 'metrics' } })));
    expect(card('KV-aware routing').getByText(/as the router’s own metrics report/)).toBeInTheDocument();
  });

  it('name layer, phase and metric of both optimizations', async () => {
    await show();
    const table = within(screen.getByRole('table', { name: 'Optimizations as a table' }));
    expect(table.getByRole('row', { name: /^KV-aware/ })).toHaveTextContent('Routing, in Dynamo’s frontendPrefillTTFT');
    expect(table.getByRole('row', { name: /^Specul/ })).toHaveTextContent('Engine, in each workerDecodeITL');
  });

  it('make no statement while loading', async () => {
    await show();
    expect(screen.getAllByText('Unknown here')).toHaveLength(6);
  });

  it('name the source of each figure, or that there is none', async () => {
    await show(laneChange(1));
    expect(card('Disaggregated serving').getByText(/NVIDIA benchmarks, quoted by/)).toBeInTheDocument();
    expect(card('Planner').getByText('No published figure here.')).toBeInTheDocument();
    const published = FEATURES.flatMap((f) => f.published);
    expect(published.every((p) => p.source !== '' && /\d/.test(p.figure))).toBe(true);
  });
});

describe('speculation', () => {
  it.each([
    ['eagle3', 'simulated', 'yes', /gain assumed/],
    ['draft', 'dynamo', 'yes', /Draft model/],
    ['off', 'dynamo', 'no', /“Off”/],
    ['not_recorded', 'simulated', 'unknown', /follows the recorded runs/],
    ['not_recorded', 'plain', 'unknown', /has not been configured/],
  ] as const)('%s on a %s target: %s', (speculation, kind, is, why) => {
    const lane = laneOn(3, { state: { speculation } });
    expect(usage('speculation', lane, kind)).toEqual({ is, why: expect.stringMatching(why) });
  });
});

it('finds speculation in use where the engines report accepted tokens', () => {
  const lane = laneOn(3, { state: { speculation: 'not_recorded' } });
  const cluster = { ...lane.cluster, speculation: { acceptance: 0.714, tokens_per_step: 2.4 } };
  expect(usage('speculation', { ...lane, cluster }, 'dynamo')).toEqual({
    is: 'yes',
    why: 'The engines report that 71.4 % of the drafted tokens are accepted.',
  });
});

describe('the phases', () => {
  const row = (id: string) => screen.getByRole('rowheader', { name: new RegExp(`^${id} ·`) }).closest('tr');
  const measured = (concurrency: number): Baseline => ({
    name: 'this target',
    title: '',
    kind: 'measured',
    deployment: {},
    rows: [
      emptyRow(concurrency, 'kv', {
        speculation: 'eagle3',
        ttft: { p95: 0.4 },
        itl: { p50: 0.0123 },
        output_tokens_per_second: 4321,
        measured: '2026-11-20T09:50:00Z',
      }),
    ],
  });

  it('say why a row that was measured is missing', async () => {
    const reason = 'the workload changed';
    const not_kept = {
      mode: 'kv' as const,
      speculation: 'off' as const,
      concurrency: 120,
      time: '2026-11-20T09:58:00Z',
      reason,
    };
    await show({ ...laneChange(3), baseline: { name: 'this target', columns: [], not_kept } } as LaneChange);
    expect(row('2')).toHaveTextContent('not kept: the workload changed');
  });

  it('show the measurements at the concurrency in force, and why others are absent', async () => {
    const { container } = await show(laneChange(3), [measured(120)]);
    expect(row('2')).toHaveTextContent('current');
    expect(row('2')).toHaveTextContent('not yet at 120 conversations');
    expect(row('3b')).toHaveTextContent('Llama 3.3 70B400 ms12.3 ms4,321here,');
    expect(row('3a')).toHaveTextContent('not offered by the mode driver');
    expect(screen.queryByRole('columnheader', { name: 'Acceptance rate' })).not.toBeInTheDocument();
    expect(screen.queryByRole('link', { name: 'Compare 3b with 3a' })).not.toBeInTheDocument();
    expect(await violations(container)).toEqual([]);
  });

  it('set kinds of speculation side by side', async () => {
    const both = measured(120);
    const [eagle] = both.rows;
    both.rows = [
      { ...eagle, acceptance_rate: 0.78, tokens_per_step: 3.34, gpu_memory_bytes: 130 * 2 ** 30 },
      { ...eagle, speculation: 'draft', acceptance_rate: 0.62, tokens_per_step: 4.1, gpu_memory_bytes: 132 * 2 ** 30 },
    ];
    await show(laneChange(3), [both]);
    expect(row('3a')).toHaveTextContent('4,32162.0 %4.10132.0 GiBhere,');
    expect(row('3b')).toHaveTextContent('4,32178.0 %3.34130.0 GiBhere,');
    expect(row('2')).toHaveTextContent('————not yet');
    expect(screen.getByRole('link', { name: 'Compare 3b with 3a' })).toHaveAttribute(
      'href',
      expect.stringMatching(/report\.html\?a=this\+target&a_mode=kv&a_speculation=draft&b=this\+target&b_mode=kv&b_sp/)
    );
  });

  it('show nothing of another concurrency, nor a number once it is lost', async () => {
    const { client } = await show(laneChange(3), [measured(60)]);
    expect(row('3b')).toHaveTextContent('not yet at 120 conversations');
    act(() => client.lose());
    expect(row('2')).not.toHaveTextContent('current');
  });

  it('mark a simulated cluster’s timing as assumed', async () => {
    await show(laneChange(3, { state: { simulation: { profile: 'h200-tp1', calibrated: false, speed: 1 } } }));
    expect(screen.getByText(/Not calibrated: the timing of the simulated cluster/)).toBeInTheDocument();
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

  it.each([
    ['aggregated', 'no'],
    ['disaggregated', 'yes'],
    [undefined, 'unknown'],
  ] as const)('of disaggregated serving follows a deployment that is configured as %s', (serving, is) => {
    const lane = laneOn(3, { target: { deployment: { serving } } });
    expect(usage('disaggregated', lane, 'dynamo')).toMatchObject({ is });
  });

  it.each([
    ['kvbm', true, 'yes'],
    ['planner', false, 'no'],
  ] as const)('of %s is what the deployment reports', (name, in_use, is) => {
    const features = [{ name, in_use, evidence: 'DynamoGraphDeployment a/b has it.' }];
    expect(usage(name, laneOn(3, { target: { features } }), 'dynamo')).toEqual({ is, why: features[0].evidence });
    expect(usage('nixl', laneOn(3, { target: { features } }), 'dynamo')).toMatchObject({ is: 'unknown' });
  });

  it('is not known of a target that cannot be reached', () => {
    expect(usage('kv-routing', laneOn(3, { target: { reachable: false } }), 'dynamo')).toMatchObject({
      is: 'unknown',
      why: 'The target is unreachable.',
    });
  });
});
