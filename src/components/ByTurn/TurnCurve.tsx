import React from 'react';

import type { LaneSnapshot } from '../../client';
import { milliseconds } from '../../lib/format';
import { Curve, scaleFrom, type Scale } from '../Curve';

interface TurnCurveProps {
  lane: LaneSnapshot;
  /** The objective of TTFT p95, in seconds. */
  slo?: number;
}

/** The turn numbers that the load generator tells apart. */
const TURNS = ['1', '2', '3', '4', '5', '6+'];

/** TTFT p50 and p95 of each turn of the last 60 s, as lines in the colour of the mode. */
export function TurnCurve({ lane: { ttft_by_turn: rows, state }, slo }: TurnCurveProps) {
  const points = (of: 'p50' | 'p95') =>
    rows.map((row): [number, number | undefined] => [TURNS.indexOf(row.turn) + 1, row[of]]);
  const words = rows.map(({ turn, p50, p95 }) => `turn ${turn}: ${milliseconds(p50)}, p95 ${milliseconds(p95)}`);
  return (
    <Curve
      label={`TTFT by turn: ${words.join('; ')}`}
      x={turnsOf(rows)}
      y={timesOf(rows)}
      lines={[
        { key: 'p50', tone: state.mode, points: points('p50'), dots: true },
        { key: 'p95', tone: state.mode, look: 'dashed', points: points('p95'), dots: true },
      ]}
      limit={slo === undefined || slo > timesOf(rows).max ? undefined : { at: slo, text: 'SLO, p95' }}
    />
  );
}

/** The axis of times, up to the slowest turn. */
export function timesOf(rows: LaneSnapshot['ttft_by_turn']): Scale {
  return scaleFrom(Math.max(...rows.map(({ p50, p95 }) => p95 ?? p50 ?? 0)), 4, (value) => milliseconds(value, 0));
}

/** Turns 1 to the last that occurred, of at least two. */
function turnsOf(rows: LaneSnapshot['ttft_by_turn']): Scale {
  const last = Math.max(2, ...rows.map(({ turn }) => TURNS.indexOf(turn) + 1));
  return { min: 1, max: last, ticks: TURNS.slice(0, last).map((turn, i) => ({ at: i + 1, text: `turn ${turn}` })) };
}
