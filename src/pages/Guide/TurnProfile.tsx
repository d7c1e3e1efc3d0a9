import type { Baseline, LaneSnapshot } from '../../client';
import { DataTable } from '../../components/DataTable';
import { milliseconds, number } from '../../lib/format';

interface TurnProfileProps {
  /** The figures by turn of the last 60 s; undefined while they are not known. */
  live: LaneSnapshot['ttft_by_turn'] | undefined;
  recorded: Baseline | undefined;
}

/** The turns of a representative recorded conversation beside those of the last 60 s. */
export function TurnProfile({ live = [], recorded }: TurnProfileProps) {
  const turns = recorded?.provenance?.turns ?? [];
  const numbers = new Set([...turns.map((_, i) => String(i + 1)), ...live.map(({ turn }) => turn)]);
  if (numbers.size === 0) {
    return <p>No turns are recorded, and none ended here in the last 60 s.</p>;
  }
  return (
    <DataTable
      label="Turns as recorded and as measured in the last 60 s"
      rows={Array.from(numbers, (turn) => ({
        turn,
        was: turns.at(Number(turn) - 1),
        now: live.find((one) => one.turn === turn),
      }))}
      keyOf={({ turn }) => turn}
      columns={[
        { name: 'Turn', cell: ({ turn }) => turn },
        { name: 'Input tokens, recorded', note: 'approximate', cell: ({ was }) => number(was?.input_tokens) },
        { name: 'Input tokens, live', note: 'mean', cell: ({ now }) => number(now?.input_mean) },
        { name: 'Output tokens, recorded', cell: ({ was }) => number(was?.output_tokens) },
        { name: 'Output tokens, live', note: 'mean', cell: ({ now }) => number(now?.output_mean) },
        { name: 'Latency, recorded', cell: ({ was }) => milliseconds(was?.latency) },
        { name: 'Latency, live', note: 'p50', cell: ({ now }) => milliseconds(now?.latency_p50) },
      ]}
    />
  );
}
