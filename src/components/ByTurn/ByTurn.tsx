import { useLive, type LaneSnapshot } from '../../client';
import { digits, MS, number, percent } from '../../lib/format';
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
    <DataTable
      label="Figures by turn"
      rows={rows}
      keyOf={({ turn }) => turn}
      columns={[
        { name: 'Turn', cell: ({ turn }) => turn, foot: 'All' },
        { name: 'TTFT p50, ms', cell: ({ p50 }) => digits(p50, MS), foot: digits(ttft.p50, MS) },
        { name: 'TTFT p95, ms', cell: ({ p95 }) => digits(p95, MS), foot: digits(ttft.p95, MS) },
        { name: 'Input tokens, mean', cell: ({ input_mean }) => number(input_mean) },
        { name: 'Input tokens, p95', cell: ({ input_p95 }) => number(input_p95), foot: number(window.input_p95) },
        { name: 'From cache', cell: ({ cached_ratio }) => percent(cached_ratio), foot: percent(kv.hit_ratio) },
        { name: 'Output tokens, mean', cell: ({ output_mean }) => number(output_mean) },
        {
          name: 'End-to-end latency p50, ms',
          cell: ({ latency_p50 }) => digits(latency_p50, MS),
          foot: digits(latency.p50, MS),
        },
        { name: 'Turns', cell: ({ n }) => number(n), foot: number(ttft.n) },
      ]}
    />
  );
}
