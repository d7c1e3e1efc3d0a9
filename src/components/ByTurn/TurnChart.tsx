import type { LaneSnapshot } from '../../client';
import { MS } from '../../lib/format';
import { Chart, SETTLING, type ChartLine, type Point } from '../Chart';

interface TurnChartProps {
  lane: LaneSnapshot;
  /** The objective of TTFT p95, in seconds. */
  slo?: number;
}

/** The turn numbers that the load generator distinguishes. */
const TURNS = ['1', '2', '3', '4', '5', '6+'];

/** TTFT p50 and p95 of each turn of the last 60 s, as lines in the color of the mode; gray while the step settles. */
export function TurnChart({ lane: { ttft_by_turn: rows, state }, slo }: TurnChartProps) {
  const last = Math.max(2, ...rows.map(({ turn }) => TURNS.indexOf(turn) + 1));
  const shown = TURNS.slice(0, last);
  const line = (of: 'p50' | 'p95', look: ChartLine['look']): ChartLine => ({
    key: of,
    name: state.settling ? `${of}, settling` : of,
    dots: true,
    points: rows.map((row): Point => [TURNS.indexOf(row.turn) + 1, row[of]]),
    ...(state.settling ? SETTLING : { tone: state.mode, look }),
  });
  return (
    <Chart
      label="TTFT by turn"
      x={{ levels: shown.map((_, i) => i + 1), words: shown.map((turn) => `turn ${turn}`) }}
      lines={[line('p50', 'solid'), line('p95', 'dashed')]}
      format={MS}
      slo={slo}
    />
  );
}
