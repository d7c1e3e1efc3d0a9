import { memo, useMemo } from 'react';

import type { Sweep } from '../../client';
import { Chart, ChartFigure, ChartGrid, type LegendItem } from '../Chart';
import { curvesOf, linesOf } from './model';
import type { Recorded } from './useRecorded';

interface SweepCurvesProps {
  sweep: Sweep;
  recorded?: Recorded;
}

/** Each metric against concurrency, by mode, with the 95 % intervals as bands. */
export const SweepCurves = memo(function SweepCurves({ sweep: { rows, request }, recorded }: SweepCurvesProps) {
  const curves = useMemo(() => curvesOf(rows, recorded?.rows ?? [], request.slo), [rows, recorded, request.slo]);
  const levels = [...new Set([...(request.levels ?? []), ...rows.map(({ concurrency }) => concurrency)])];
  const x = { levels: levels.sort((a, b) => a - b), unit: 'conversations' };
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
    <ChartGrid least={320} stretched legend={legend}>
      {curves.map(({ metric: { key, name, heading }, ...drawing }) => (
        <ChartFigure key={key} caption={heading}>
          <Chart label={`${name} by concurrency and mode; figures in the table`} x={x} {...drawing} />
        </ChartFigure>
      ))}
    </ChartGrid>
  );
});
