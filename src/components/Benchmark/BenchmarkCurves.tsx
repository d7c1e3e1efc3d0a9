import React, { memo, useMemo } from 'react';

import type { Settings } from '../../client';
import { modeName } from '../../lib/names';
import { Curve, CurveFigure, Curves, levels } from '../Curve';
import { toCurves, type BenchmarkModel } from './model';

interface BenchmarkCurvesProps {
  model: BenchmarkModel;
  settings: Settings;
  /** The concurrency of the running workload; undefined while none runs. */
  concurrency?: number;
}

/** Each metric against concurrency: the figures are those of the tables. */
export const BenchmarkCurves = memo(function BenchmarkCurves({ model, settings, concurrency }: BenchmarkCurvesProps) {
  const curves = useMemo(() => toCurves(model, settings), [model, settings]);
  const x = levels(model.rows.map((row) => row.concurrency));
  const isOn = concurrency !== undefined && concurrency >= x.min && concurrency <= x.max;
  return (
    <Curves
      least={300}
      legend={(['round_robin', 'kv'] as const).map((mode) => ({ key: mode, tone: mode, words: modeName(mode) }))}
    >
      {curves.map(({ key, name, lines, y, limit }) => (
        <CurveFigure key={key} caption={name} y={y}>
          <Curve
            label={`${name} by concurrency under round-robin and KV-aware routing; figures in the tables`}
            x={x}
            y={y}
            lines={lines}
            limit={limit}
            marks={isOn ? [{ at: concurrency, text: 'live now' }] : undefined}
          />
        </CurveFigure>
      ))}
    </Curves>
  );
});
