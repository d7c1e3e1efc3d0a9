import { useLive, type LaneSnapshot } from '../../client';
import { digits, MS, number, percent, SECONDS } from '../../lib/format';
import { DataTable } from '../DataTable';

/** TTFT, latency and tokens by turn number over the last 60 s. */
export function ByTurn({ lane: name }: { lane: string }) {
  const { lane, state } = useLive(name);
  if (!lane) {
    const why = state.status === 'loading' ? 'waiting for the load generator' : 'the load generator is unreachable';
    return <p>No data by turn: {why}.</p>;
  }
  if (!lane.state.running) {
    return <p>No data by turn: the workload is not running.</p>;
  }
  if (lane.ttft_by_turn.length === 0) {
    return <p>No turn has ended in the last 60 s.</p>;
  }
  return <Table lane={lane} />;
}

/** The figures of each turn, and of all. */
function Table({ lane: { ttft_by_turn: rows, window, kv } }: { lane: LaneSnapshot }) {
  const { ttft, latency } = window.metrics;
  return (
    <DataTable label="Figures by turn">
      <thead>
        <tr>
          <th scope="col">Turn</th>
          <th scope="col">TTFT p50, ms</th>
          <th scope="col">TTFT p95, ms</th>
          <th scope="col">Input tokens, mean</th>
          <th scope="col">Input tokens, p95</th>
          <th scope="col">From cache</th>
          <th scope="col">Output tokens, mean</th>
          <th scope="col">End-to-end latency p50, s</th>
          <th scope="col">Turns</th>
        </tr>
      </thead>
      <tbody>
        {rows.map((row) => (
          <tr key={row.turn}>
            <th scope="row">{row.turn}</th>
            <td>{digits(row.p50, MS)}</td>
            <td>{digits(row.p95, MS)}</td>
            <td>{number(row.input_mean)}</td>
            <td>{number(row.input_p95)}</td>
            <td>{percent(row.cached_ratio)}</td>
            <td>{number(row.output_mean)}</td>
            <td>{digits(row.latency_p50, SECONDS)}</td>
            <td>{number(row.n)}</td>
          </tr>
        ))}
      </tbody>
      <tfoot>
        <tr>
          <th scope="row">All</th>
          <td>{digits(ttft.p50, MS)}</td>
          <td>{digits(ttft.p95, MS)}</td>
          <td />
          <td>{number(window.input_p95)}</td>
          <td>{percent(kv.hit_ratio)}</td>
          <td />
          <td>{digits(latency.p50, SECONDS)}</td>
          <td>{number(ttft.n)}</td>
        </tr>
      </tfoot>
    </DataTable>
  );
}
