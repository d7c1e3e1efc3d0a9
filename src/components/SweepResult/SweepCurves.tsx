import React, { memo, useMemo } from 'react';

import type { Sweep } from '../../client';
import { Curve, CurveFigure, Curves, levels, type LegendItem } from '../Curve';
import { curvesOf, linesOf } from './model';
import type { Recorded } from './useRecorded';

interface SweepCurvesProps {
  sweep: Sweep;
  recorded?: Recorded;
}

/** Each metric against concurrency, by mode, with the 95 % intervals as bands. */
export const SweepCurves = memo(function SweepCurves({ sweep: { rows, request }, recorded }: SweepCurvesProps) {
  const curves = useMemo(() => curvesOf(rows, recorded?.rows ?? [], request.slo), [rows, recorded, request.slo]);
  const asked = request.levels ?? [];
  const x = levels([...new Set([...asked, ...rows.map(({ concurrency }) => concurrency)])].sort((a, b) => a - b));
  const legend: LegendItem[] = [
    ...linesOf(rows).map(({ name, ...line }) => ({ ...line, words: name })),
    {
      key: 'measured',
      words: (
        <>
          <b>measured</b>, with its 95 % interval
        </>
      ),
    },
  ];
  if (recorded) {
    const words = (
      <>
        <b>recorded</b>: {recorded.title}
      </>
    );
    legend.push({ key: 'recorded', look: 'dashed', words });
  }
  return (
    <Curves least={320} stretched legend={legend}>
      {curves.map(({ metric: { key, name, unit }, lines, bands, y, limit, isCut }) => (
        <CurveFigure key={key} caption={`${name}, ${unit}`} y={y} isCut={isCut}>
          <Curve
            label={`${name} by concurrency and mode; figures in the table`}
            x={x}
            y={y}
            lines={lines}
            bands={bands}
            limit={limit}
          />
        </CurveFigure>
      ))}
    </Curves>
  );
});
