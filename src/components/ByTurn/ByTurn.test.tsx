import { act, screen } from '@testing-library/react';

import { violations } from '../../test/axe';
import { FakeClient, laneSnapshot } from '../../test/fixtures';
import { renderWith, texts } from '../../test/render';
import { ByTurn, TurnChart } from '.';

it('shows TTFT by turn with tokens and latencies, and reports why where it has none', async () => {
  const client = new FakeClient();
  const window = { ...laneSnapshot().window, input_p95: 12_700 };
  const first = { turn: '1', n: 20, p50: 0.4, p95: 0.612, latency_p50: 37.1, output_mean: 555 };
  const last = {
    turn: '6+',
    n: 2,
    p50: 0.08,
    p95: 0.09,
    input_mean: 7000,
    input_p95: 7400,
    cached_ratio: 0.93,
    output_mean: 888,
  };
  client.show({ window, ttft_by_turn: [first, last] });
  const { container } = renderWith(
    client,
    <>
      <TurnChart lane={laneSnapshot({ ttft_by_turn: [first, last] })} slo={0.6} />
      <ByTurn lane="main" />
    </>
  );
  expect(
    screen.getByRole('img', {
      name: 'TTFT by turn, at most 612 ms; last turn 6+; p50 80.0 ms; p95 90.0 ms; SLO 600 ms',
    })
  ).toBeInTheDocument();
  const rows = screen.getAllByRole('row').map((row) => texts(row.children).join('|'));
  expect(rows[1]).toBe('1|400|612|—|—|—|555|37,100|20');
  expect(rows[2]).toBe('6+|80.0|90.0|7,000|7,400|93.0 %|888|—|2');
  expect(rows[3]).toMatch(/^All\|.*12,700/);
  expect(await violations(container)).toEqual([]);

  act(() => client.show());
  expect(screen.getByText('No turn has ended in the last 60 s.')).toBeInTheDocument();
  act(() => client.show({ state: { running: false } }));
  expect(screen.getByText('No data by turn: the workload is not running.')).toBeInTheDocument();
  act(() => client.lose());
  expect(screen.getByText('No data by turn: the load generator is unreachable.')).toBeInTheDocument();
});
