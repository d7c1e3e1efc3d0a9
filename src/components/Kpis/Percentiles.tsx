import { figures, times, useLive } from '../../client';
import { digits, MS, number } from '../../lib/format';
import { DataTable } from '../DataTable';

/** The percentiles of each latency over the last 60 s, in milliseconds. */
export function Percentiles({ lane: name }: { lane: string }) {
  const { lane } = useLive(name);
  const metrics = lane?.state.running ? lane.window.metrics : undefined;
  return (
    <DataTable
      label="Percentiles of the last 60 s"
      rows={times}
      keyOf={(time) => time}
      columns={[
        { name: 'Latency, ms', cell: (time) => figures[time].name },
        ...(['mean', 'p50', 'p95', 'p99'] as const).map((quantile) => ({
          name: quantile,
          cell: (time: (typeof times)[number]) => digits(metrics?.[time][quantile], MS),
        })),
        { name: 'Values', cell: (time) => number(metrics?.[time].n) },
      ]}
    />
  );
}
