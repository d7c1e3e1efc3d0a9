import { memo, useMemo } from 'react';

import { useLive, type Settings } from '../../client';
import { modeName } from '../../lib/names';
import { Chart, ChartFigure, ChartGrid, type LegendItem } from '../Chart';
import { liveValues, toCurves, type BenchmarkModel, type LiveValues } from './model';

interface BenchmarkCurvesProps {
  model: BenchmarkModel;
  settings: Settings;
  lane: string;
}

/** Each metric against concurrency, with the figures of the tables, and the live ones as points. */
export const BenchmarkCurves = memo(function BenchmarkCurves({ model, settings, lane: name }: BenchmarkCurvesProps) {
  const { lane } = useLive(name);
  const live = JSON.stringify(liveValues(lane) ?? null); // rendered again only where a figure has changed
  const curves = useMemo(
    () => toCurves(model, settings, (JSON.parse(live) as LiveValues | null) ?? undefined),
    [model, settings, live]
  );
  const legend: LegendItem[] = (['round_robin', 'kv'] as const).map((mode) => ({
    key: mode,
    tone: mode,
    words: modeName(mode),
  }));
  if (curves.some(({ lines }) => lines.some(({ key }) => key === 'live'))) {
    legend.push({ key: 'live', tone: lane?.state.mode, look: 'rings', words: 'live now, this step' });
  }
  return (
    <ChartGrid least={300} legend={legend}>
      {curves.map(({ key, name, ...drawing }) => (
        <ChartFigure key={key} caption={name}>
          <Chart
            label={`${name} by concurrency under round-robin and KV-aware routing; figures in the tables`}
            {...drawing}
          />
        </ChartFigure>
      ))}
    </ChartGrid>
  );
});
