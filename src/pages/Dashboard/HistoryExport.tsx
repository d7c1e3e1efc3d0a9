import { readHistory, useClient, type History } from '../../client';
import { ExportButton } from '../../components/Export';
import { toCsv } from '../../lib/csv';
import { LANE } from '../lane';

/** Exports the last ten minutes of the workload, second by second, as a file. */
export function HistoryExport() {
  const client = useClient();
  const read = () => readHistory(client, LANE);
  return (
    <ExportButton
      label="Export the last ten minutes"
      files={[
        {
          label: 'Last ten minutes as CSV',
          of: 'history',
          format: 'csv',
          text: async () => historyCsv(await read()),
        },
        {
          label: 'Last ten minutes as JSON',
          of: 'history',
          format: 'json',
          text: async () => JSON.stringify(await read(), undefined, 2),
        },
      ]}
    />
  );
}

const names = [
  'time',
  'running',
  'concurrency',
  'mode',
  'speculation',
  'ttft_p50',
  'ttft_p95',
  'output_tokens_per_second',
  'kv_hit_ratio',
] as const;

/** Writes a line a second, oldest first; TTFT in seconds. */
function historyCsv({ points }: History): string {
  return toCsv(
    [...names],
    points.map((point) => names.map((name) => point[name]))
  );
}
