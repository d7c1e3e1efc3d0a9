import React from 'react';

import { useLive, type HistoryPoint } from '../../client';
import { TurnChart } from '../../components/ByTurn';
import { Chart, ChartFigure, ChartGrid, ChartGroup, type ChartLine, type LegendItem } from '../../components/Chart';
import { lastKnown } from '../../lib/known';
import { modeName } from '../../lib/names';
import { LANE } from '../lane';
import { changesOf, formats, linesOf, spanOf } from '../Stage/history';
import { useHistory } from '../Stage/useHistory';

/** The last ten minutes of the workload, and TTFT by turn of the last 60 s. */
export function LiveCharts() {
  const live = useLive(LANE);
  const points = useHistory(live);
  const known = lastKnown(live, LANE);
  if (!known) {
    return <p>Curves appear once the load generator responds.</p>;
  }
  const { lane, settings, time } = known;
  const x = spanOf(points, Date.parse(time));
  const marks = changesOf(points);
  return (
    <ChartGrid legend={legendOf(points)} least={300} stretched>
      {courses.map(({ name, lines, format, slo }) => (
        <ChartFigure key={name} caption={name}>
          <Chart
            label={`${name} of the last ten minutes`}
            x={x}
            lines={lines(points)}
            marks={marks}
            format={format}
            slo={slo ? settings.slo.ttft : undefined}
          />
        </ChartFigure>
      ))}
      <ChartGroup>
        <ChartFigure caption="TTFT by turn, last 60 s">
          <TurnChart lane={lane} slo={settings.slo.ttft} />
        </ChartFigure>
      </ChartGroup>
    </ChartGrid>
  );
}

const courses = [
  {
    name: 'TTFT',
    lines: (points: HistoryPoint[]): ChartLine[] => [
      ...linesOf(points, 'ttft_p50', 'solid', 'p50'),
      ...linesOf(points, 'ttft_p95', 'dashed', 'p95'),
    ],
    format: formats.ttft_p95,
    slo: true,
  },
  {
    name: 'Output tokens/s',
    lines: (points: HistoryPoint[]) => linesOf(points, 'output_tokens_per_second'),
    format: formats.output_tokens_per_second,
  },
  {
    name: 'KV cache hit rate',
    lines: (points: HistoryPoint[]) => linesOf(points, 'kv_hit_ratio'),
    format: formats.kv_hit_ratio,
  },
];

function legendOf(points: HistoryPoint[]): LegendItem[] {
  const modes = Array.from(new Set(points.map(({ mode }) => mode)));
  return [
    ...modes.map((mode) => ({ key: mode, tone: mode, words: modeName(mode) })),
    { key: 'p50', words: 'p50' },
    { key: 'p95', look: 'dashed', words: 'p95' },
  ];
}
