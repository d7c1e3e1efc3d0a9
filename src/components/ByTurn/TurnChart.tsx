import type { LaneSnapshot } from '../../client';
import { MS } from '../../lib/format';
import { Chart, type Point } from '../Chart';

interface TurnChartProps {
  lane: LaneSnapshot;
  /** The objective of TTFT p95, in seconds. */
  slo?: number;
}

/** The turn numbers that the load generator distinguishes. */
const TURNS = ['1', '2', '3', '4', '5', '6+'];

/** TTFT p50 and p95 of each turn of the last 60 s, as lines in the color of the mode. */
export function TurnChart({ lane: { ttft_by_turn: rows, state }, slo }: TurnChartProps) {
  const points = (of: 'p50' | 'p95') => rows.map((row): Point => [TURNS.indexOf(row.turn) + 1, row[of]]);
  const last = Math.max(2, ...rows.map(({ turn }) => TURNS.indexOf(turn) + 1));
  const shown = TURNS.slice(0, last);
  return (
    <Chart
      label="TTFT by turn"
      x={{ levels: shown.map((_, i) => i + 1), words: shown.map((turn) => `turn ${turn}`) }}
      lines={[
        { key: 'p50', name: 'p50', tone: state.mode, points: points('p50'), dots: true },
        { key: 'p95', name: 'p95', tone: state.mode, look: 'dashed', points: points('p95'), dots: true },
      ]}
      format={MS}
      slo={slo}
    />
  );
}
