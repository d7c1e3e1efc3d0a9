import { act, screen, within } from '@testing-library/react';

import { violations } from '../../test/axe';
import { FakeClient, laneSnapshot, type LaneChange } from '../../test/fixtures';
import { renderWith, texts } from '../../test/render';
import { Kpis } from './Kpis';

const lane = laneSnapshot();
const full: LaneChange = {
  totals: { ...lane.totals, ok: 12_345 },
  kv: { hit_ratio: 0.713, source: 'usage' },
  cluster: { ...lane.cluster, queued: 4, queued_router: 1, queued_engines: 3 },
};

function show(change: LaneChange = full) {
  const client = new FakeClient();
  client.show(change);
  return renderWith(client, <Kpis lane="main" />);
}

const cards = () => within(screen.getByRole('list', { name: 'Key figures' })).getAllByRole('listitem');
const card = (name: string) => {
  const found = cards().find((c) => c.firstElementChild?.textContent === name);
  if (!found) {
    throw new Error(`no card ${name}`);
  }
  return found;
};
const values = () => cards().map((c) => c.children[1].textContent);

describe('the key figures', () => {
  it('are six, beside those recorded at this concurrency', async () => {
    const { container } = show();
    expect(cards().map(({ children }) => texts(children).slice(0, 3))).toEqual([
      ['Requests/s', '4.60', 'Completed, last 60 s'],
      ['Requests', '12,345', 'Completed since start'],
      ['Tokens/s', '3,168', 'Output tokens, last 60 s'],
      ['KV hit rate', '71.3 %', 'Prompt tokens from cache, last 60 s'],
      ['Queued', '4', '1 at the router, 3 at the engines'],
      ['Errors', '0', 'Failed since start'],
    ]);
    expect(card('Requests/s')).toHaveTextContent('RR 4.21 recorded');
    expect(card('Tokens/s')).toHaveTextContent('KV 2,817 recorded');
    expect(card('KV hit rate')).toHaveTextContent('RR 12.3 % recorded');
    expect(await violations(container)).toEqual([]);
  });

  it('name this target’s measurements as such', () => {
    show({ ...full, baseline: { name: 'this target' } });
    expect(card('Tokens/s')).toHaveTextContent('RR 2,817 measured');
  });

  it('are dashes once the load generator is unreachable, the recorded ones too, and while stopped', () => {
    const { client } = show();
    act(() => client.lose());
    expect(values()).toEqual(['—', '—', '—', '—', '—', '—']);
    expect(screen.queryByText('recorded')).not.toBeInTheDocument();
    act(() => client.show({ ...full, state: { running: false, phase: 'stopped' } }));
    expect(values()).toEqual(['—', '—', '—', '—', '—', '—']);
  });

  it.each([
    [{ available: false, source: 'prometheus' }, '—Waiting at router and enginesPrometheus unavailable'],
    [{ available: false, source: 'direct' }, '—Waiting at router and enginesCluster metrics unavailable'],
    [{}, 'not reportedNeither router nor engines report their queue'],
    [{ unread: { frontend: 'Prometheus does not scrape it' } }, 'not readPrometheus does not scrape it'],
  ])('say why nothing is known of the queue (%#)', (cluster, words) => {
    show({ ...full, cluster: { ...lane.cluster, ...cluster, queued: undefined } });
    expect(card('Queued')).toHaveTextContent(words);
  });

  it('say what the caches held at the start of the run', () => {
    show({ ...full, state: { caches: { state: 'warm', openings: 10, warm: 9, cached_tokens_most: 3584 } } });
    expect(card('KV hit rate')).toHaveTextContent('Caches at the start warm');
  });

  it.each([
    [{ queued: 4, queued_router: 4 }, 'Waiting at the router'],
    [{ queued: 4, queued_engines: 4 }, 'Waiting at the engines'],
    [{ queued: 4, queued_router: 4, queued_engines: 3 }, 'At the frontend, 3 of them at the engines'],
  ])('say where requests wait (%#)', (queue, words) => {
    show({ ...full, cluster: { ...lane.cluster, ...queue } });
    expect(card('Queued')).toHaveTextContent(words);
  });

  it.each([
    ['usage', 'Prompt tokens from cache'],
    ['frontend', 'reported by the frontend'],
    ['engine', 'reported by the engines'],
  ])('say who saw the cache hits: %s', (source, words) => {
    show({ ...full, kv: { hit_ratio: 0.5, source } });
    expect(card('KV hit rate')).toHaveTextContent(words);
  });

  it('distinguish cache hits without a value yet from those that are not reported', () => {
    const { client } = show({ ...full, kv: {} });
    expect(card('KV hit rate')).toHaveTextContent('No turn has ended yet');
    const metrics = { ...lane.window.metrics, ttft: { n: 4 } };
    const kv = { predicted: 0.94, not_reported: 'the engine does not report cached tokens' };
    act(() => client.show({ ...full, kv, window: { ...lane.window, metrics } }));
    expect(card('KV hit rate')).toHaveTextContent('not reportedThe engine does not report cached tokens');
  });
});
