import { act, cleanup, screen, within } from '@testing-library/react';

import type { Worker } from '../../client';
import { manyWorkers } from '../Diagram/fixtures';
import { violations } from '../../test/axe';
import { FakeClient, laneSnapshot, type LaneChange } from '../../test/fixtures';
import { renderWith, texts } from '../../test/render';
import { REMEMBERED, recentWorkers } from './model';
import { Workers } from './Workers';

const BEGIN = Date.parse('2026-11-20T10:00:00Z');
const at = (seconds: number) => ({ time: new Date(BEGIN + seconds * 1000).toISOString() });

const worker = (name: string, change: Partial<Worker> = {}): Worker => ({
  id: `1${name}`,
  name,
  inflight: 12,
  waiting: 1,
  queue_seconds: 0.12,
  routed: 1234,
  cache_use: 0.42,
  hit_ratio: 0.9,
  gpus: [{ index: '0', utilisation: 0.96, memory_used: 95, memory_total: 100 }],
  ...change,
});

const two = [worker('one'), worker('two')];
const cluster = (workers: Worker[], change = {}): LaneChange => ({
  cluster: {
    ...laneSnapshot().cluster,
    source: 'prometheus',
    speculation: { acceptance: 0.402, tokens_per_step: 2.204 },
    workers,
    ...change,
  },
  target: { deployment: { gpu: 'simulated H200', model: 'Llama 70B', engine: 'simulated trtllm', workers: 2 } },
});

function show(change: LaneChange = cluster(two)) {
  const client = new FakeClient();
  client.show(change);
  return renderWith(client, <Workers lane="main" />);
}

const cards = () => within(screen.getByRole('list', { name: 'Workers' })).queryAllByRole('listitem');
const names = () => cards().map((card) => within(card).getByRole('heading').textContent);

describe('the workers', () => {
  it('have a card each, below the deployment', async () => {
    const { container } = show();
    expect(names()).toEqual(['one', 'two']);
    const [card] = cards();
    expect(card).toHaveTextContent('GPU 096.0 %high utilization95.0 %memory');
    expect(card).toHaveTextContent(
      'In flight12Waiting1Time in queue120 msKV cache in use42.0 %Engine KV hits90.0 %Requests routed1,234'
    );
    expect(screen.getByText('simulated H200')).toBeInTheDocument();
    expect(screen.getByText('Llama 70B')).toBeInTheDocument();
    expect(screen.getByText('40.2 %')).toBeInTheDocument();
    expect(screen.getByText('2.20')).toBeInTheDocument();
    expect(screen.getByText('From Prometheus, 1 s ago')).toBeInTheDocument();
    expect(screen.queryByRole('alert')).not.toBeInTheDocument();
    expect(await violations(container)).toEqual([]);
  });

  it('have a box for each GPU, with its load in words', () => {
    const loads = [0.1, 0.3, 0.7, 0.71, undefined]; // that of the last is not reported
    const gpus = loads.map((utilisation, i) => ({ index: String(i), utilisation }));
    show(cluster([worker('one', { gpus })]));
    const loaded = ['low', 'medium', 'medium', 'high'].map((level) => `${level} utilization`);
    expect(texts(screen.getAllByText(/ utilization$/))).toEqual(loaded);
    expect(screen.getAllByText('memory not reported')).toHaveLength(5);
  });

  it('mark what their engine does not report', () => {
    const bare = { id: '1', name: 'one', gpus: [], not_reported: ['cache_use', 'hit_ratio', 'inflight', 'waiting'] };
    show({ ...cluster([bare], { speculation: {} }), target: { deployment: {} } });
    expect(screen.getByText('GPUs not reported: no DCGM exporter reports them')).toBeInTheDocument();
    expect(within(cards()[0]).getAllByText('not reported')).toHaveLength(4);
    expect(cards()[0]).toHaveTextContent('Time in queue—'); // reported, but without a request so far
    expect(screen.getByText('Acceptance').nextSibling).toHaveTextContent('Off');
    expect(screen.getByText('Engine').nextSibling).toHaveTextContent('not reported by this engine');
  });

  it('distinguish a Prometheus without metrics of the cluster from one that is unreachable', () => {
    const lost = { available: false, source: 'prometheus', problem: 'it has scraped no metrics' };
    const { client } = show(cluster([], { ...lost, unread: { workers: 'Prometheus does not scrape the workers' } }));
    expect(screen.getByRole('alert')).toHaveTextContent(
      /Prometheus has no data on this cluster.*no metrics; Prometheus does not scrape the workers/
    );
    act(() => client.show(cluster([], lost)));
    expect(screen.getByRole('alert')).toHaveTextContent('Prometheus unavailable');
  });

  it('mark metrics that are not read, with the reason, instead of “not reported”', () => {
    const bare = { id: '1', name: 'one', gpus: [], not_reported: ['cache_use', 'hit_ratio', 'inflight', 'waiting'] };
    const unread = { workers: 'workers are not scraped', gpus: 'a DCGM exporter is not scraped' };
    show({ ...cluster([bare], { speculation: {}, unread }), target: { deployment: {} } });
    expect(screen.getByText('GPUs not read: a DCGM exporter is not scraped')).toBeInTheDocument();
    const silent = within(cards()[0]).getAllByText('not read');
    expect(silent).toHaveLength(4);
    expect(silent[0]).toHaveAttribute('title', unread.workers);
    expect(screen.getByText('Engine').nextSibling).toHaveTextContent('not read');
    expect(screen.queryByText(/not reported/)).not.toBeInTheDocument();
  });

  it('do not mark a figure of an engine as missing before its first work', () => {
    const { totals } = laneSnapshot();
    show({ ...cluster(two, { speculation: {} }), totals: { ...totals, ok: 0 } });
    expect(screen.getByText('Tokens per step').nextSibling).toHaveTextContent('—');
  });

  it('have the GPUs beside them whose worker is not known, under their host', () => {
    const gpus = [
      { index: '0', utilisation: 0.5 },
      { index: '1', utilisation: 0.6 },
    ];
    show(cluster(two, { other_gpus: [{ host: 'node-4', gpus }] }));
    expect(names()).toEqual(['one', 'two', 'node-4']);
    expect(cards()[2]).toHaveTextContent('GPUs of unknown workers');
    expect(cards()[2]).toHaveTextContent('GPU 160.0 %');
  });

  it('have the instances of a GPU in MIG mode, with what is not reported of each', () => {
    const gpus = [
      { index: '0', instance: '2g.20gb #3', utilisation: 0.93, memory_used: 10, memory_total: 19 },
      { index: '0', instance: '2g.20gb #5', memory_used: 1, memory_total: 100 },
    ];
    show(cluster([{ ...two[0], gpus }]));
    expect(cards()[0]).toHaveTextContent('GPU 0 2g.20gb #393.0 %high utilization52.6 %memory');
    expect(cards()[0]).toHaveTextContent('GPU 0 2g.20gb #5—utilization not reported1.0 %memory');
  });

  it('say that a simulated utilization is one, and what it imitates', () => {
    const { client } = show({ ...cluster(two), target: { kind: 'unknown' } });
    expect(screen.queryByText(/GPU utilization is simulated/)).not.toBeInTheDocument();
    act(() => client.show({ ...cluster(two), target: { kind: 'simulated' } }));
    expect(screen.getByText(/GPU utilization is simulated.*DCGM_FI_DEV_GPU_UTIL/)).toBeInTheDocument();
  });

  it('have what tokens and turns cost below them, as far as it is known', () => {
    show({ ...cluster(two), cost: { joules_per_million_tokens: 620_579, tokens_per_second_per_gpu: 568.49 } });
    const known = 'Last 60 s: Energy per million tokens: 0.62 MJ · Tokens/s per GPU: 568.5';
    expect(screen.getByText(known)).toBeInTheDocument();
    cleanup();
    show({ ...cluster(two), cost: { joules_per_million_tokens: 620_579, power_simulated: true } });
    expect(screen.getByText(/0\.62 MJ · the power is simulated$/)).toBeInTheDocument();
  });

  it('are reported as missing where fewer report than configured, or none', () => {
    const { unmount } = show(cluster([]));
    expect(screen.getByText('No worker has reported yet.')).toBeInTheDocument();
    unmount();
    show(cluster([worker('one')]));
    expect(screen.getByText('1 of 2 workers report')).toBeInTheDocument();
  });

  it('are summed up where only some are listed, and are not reported as lost when they leave the list', () => {
    const listed = manyWorkers();
    const { client, container } = show({ cluster: listed, target: { deployment: { workers: 2000 } } });
    expect(container).toHaveTextContent(
      '1,998 more workers: only the busiest and the least busy of 2,000 are listed. In flight ' +
        'per worker: half have 12 or fewer, 9 in 10 have 20 or fewer, from 0 to 31. Waiting at ' +
        'all of them: 70. KV cache in use: half are at 42.0 % or less, 9 in 10 at 60.0 % or less, ' +
        'from 1.0 % to 71.0 %.'
    );
    expect(screen.queryByText(/workers report/)).not.toBeInTheDocument();
    act(() => client.show({ cluster: { ...listed, workers: [worker('worker-7')] } }, at(5)));
    expect(names()).toEqual(['worker-7']);
  });

  it('keep a card without figures for a minute once they are lost', () => {
    const { client } = show();
    act(() => client.show(cluster([worker('one')]), at(5)));
    expect(names()).toEqual(['one', 'two']);
    expect(cards()[1]).toHaveTextContent('Lost: no data for 5 s');
    expect(cards()[1]).not.toHaveTextContent('96.0 %');
    act(() => client.show(cluster(two), at(6)));
    expect(cards()[1]).toHaveTextContent('96.0 %');
    act(() => client.show(cluster([worker('one')]), at(6 + REMEMBERED / 1000)));
    expect(names()).toEqual(['one']);
  });

  it('show no old number once the load generator is unreachable', () => {
    const { client, container } = show();
    act(() => client.lose());
    expect(names()).toEqual(['one', 'two']);
    expect(cards()[0]).toHaveTextContent('Load generator lost');
    expect(container).not.toHaveTextContent(/96.0 %|40\.2|2\.20|1,234/);
    expect(container).toHaveTextContent('simulated H200');
  });

  it('report why nothing is known of them', () => {
    const { client } = show();
    const gone = { available: false, problem: 'connection refused', speculation: {} };
    act(() => client.show(cluster([], gone), at(1)));
    expect(screen.getByText('connection refused')).toBeInTheDocument();
    expect(screen.getAllByText('Prometheus unavailable')).toHaveLength(3); // once above, and on each card
    expect(screen.queryByText(/workers report/)).not.toBeInTheDocument();
    expect(screen.queryByText(/by this engine/)).not.toBeInTheDocument();
  });

  it('show the cluster’s note on its metrics', () => {
    show(cluster(two, { source: 'direct', problem: 'cache use is not reported' }));
    expect(screen.getByText('cache use is not reported')).toBeInTheDocument();
    expect(screen.getByText('From the workers themselves, 1 s ago')).toBeInTheDocument();
  });

  it('wait for the first snapshot, but not where the load generator is unreachable', () => {
    const client = new FakeClient();
    renderWith(client, <Workers lane="main" />);
    expect(screen.getByText('Waiting for the first snapshot…')).toBeInTheDocument();
    act(() => client.lose());
    expect(screen.queryByText(/^Waiting/)).not.toBeInTheDocument();
    expect(screen.getByText(/once the load generator responds/)).toBeInTheDocument();
  });
});

describe('the list of recent workers', () => {
  it('recognizes a restarted one with another id by its name', () => {
    const seen = recentWorkers([], [worker('one')], 1000);
    expect(recentWorkers(seen, [worker('one', { id: '9' })], 2000)).toHaveLength(1);
    expect(recentWorkers(seen, [worker('pod-one', { id: '1one' })], 2000)).toHaveLength(1);
  });

  it('does not grow', () => {
    let seen = recentWorkers([], [], 0);
    for (let i = 0; i < 500; i++) {
      seen = recentWorkers(seen, [worker(`pod-${i}`)], i * 1000);
    }
    expect(seen.length).toBeLessThanOrEqual(1 + REMEMBERED / 1000);
  });
});
