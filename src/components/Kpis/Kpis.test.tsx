import { act, screen, within } from '@testing-library/react';

import { violations } from '../../test/axe';
import { FakeClient, laneSnapshot, type LaneChange } from '../../test/fixtures';
import { renderWith, texts } from '../../test/render';
import { Kpis, Percentiles } from '.';

const lane = laneSnapshot();
const full: LaneChange = {
  totals: { ...lane.totals, ok: 12_345 },
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
  it('are three, with what they count', async () => {
    const { container } = show();
    expect(cards().map(({ children }) => texts(children).slice(0, 3))).toEqual([
      ['Requests', '12,345', 'Completed since start'],
      ['Queued', '4', '1 at the router, 3 at the engines'],
      ['Errors', '0', 'Failed since start'],
    ]);
    expect(await violations(container)).toEqual([]);
  });

  it('are dashes once the load generator is unreachable, and while stopped', () => {
    const { client } = show();
    act(() => client.lose());
    expect(values()).toEqual(['—', '—', '—']);
    act(() => client.show({ ...full, state: { running: false, phase: 'stopped' } }));
    expect(values()).toEqual(['—', '—', '—']);
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

  it.each([
    [{ queued: 4, queued_router: 4 }, 'Waiting at the router'],
    [{ queued: 4, queued_engines: 4 }, 'Waiting at the engines'],
    [{ queued: 4, queued_router: 4, queued_engines: 3 }, 'At the frontend, 3 of them at the engines'],
  ])('say where requests wait (%#)', (queue, words) => {
    show({ ...full, cluster: { ...lane.cluster, ...queue } });
    expect(card('Queued')).toHaveTextContent(words);
  });
});

it('has the percentiles of each latency over the last 60 s', async () => {
  const client = new FakeClient();
  const { metrics } = lane.window;
  client.show({
    window: { ...lane.window, metrics: { ...metrics, tpot: { n: 9, p50: 0.026, p95: 0.03, p99: 0.041 } } },
  });
  const { container } = renderWith(client, <Percentiles lane="main" />);
  expect(screen.getAllByRole('row').map((row) => texts(row.children).join('|'))).toContain('TPOT|—|26.0|30.0|41.0|9');
  expect(await violations(container)).toEqual([]);
});
