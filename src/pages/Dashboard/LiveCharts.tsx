import { memo } from 'react';

import { figures, useLive, type HistoryPoint } from '../../client';
import { TurnChart } from '../../components/ByTurn';
import {
  Chart,
  ChartFigure,
  ChartGrid,
  ChartGroup,
  SETTLING,
  type LegendItem,
  type Look,
} from '../../components/Chart';
import { lastKnown, type Known } from '../../lib/known';
import { servingName } from '../../lib/names';
import { LANE } from '../lane';
import { ceilingOf, changesOf, formats, linesOf, servingsOf, spanOf, type Value } from '../Stage/history';
import { useHistory } from '../Stage/useHistory';

/** The last ten minutes of the workload, and TTFT by turn of the last 60 s. */
export function LiveCharts() {
  const live = useLive(LANE);
  const points = useHistory(live);
  const known = lastKnown(live, LANE);
  return known ? (
    <Charts known={known} points={points} stamp={stampOf(points)} />
  ) : (
    <p>Curves appear once the load generator responds.</p>
  );
}

/** The interval of drawing the curves, in milliseconds: a second of ten minutes is less than a pixel. */
const EVERY = 5000;

/** A key that changes when the curves have to be drawn: with time, and when earlier points arrive. */
function stampOf(points: HistoryPoint[]): string {
  return [points[0], points.at(-1)].map((point) => point && Math.floor(Date.parse(point.time) / EVERY)).join(' ');
}

interface ChartsProps {
  known: Known;
  points: HistoryPoint[];
  stamp: string;
}

const Charts = memo(
  function Charts({ known: { lane, settings, time }, points }: ChartsProps) {
    const x = spanOf(points, Date.parse(time));
    const marks = changesOf(points);
    return (
      <ChartGrid legend={legendOf(points)} least={230} stretched>
        {courses.map(({ name, curves, slo }) => {
          const [highest] = curves[curves.length - 1];
          return (
            <ChartFigure key={name} caption={name}>
              <Chart
                label={`${name} of the last ten minutes`}
                x={x}
                lines={curves.flatMap((curve) => linesOf(points, ...curve))}
                marks={marks}
                format={formats[highest]}
                slo={slo ? settings.slo.ttft : undefined}
                ceiling={ceilingOf(points, highest)}
              />
            </ChartFigure>
          );
        })}
        <ChartGroup>
          <ChartFigure caption="TTFT by turn, last 60 s, p50 and p95">
            <TurnChart lane={lane} slo={settings.slo.ttft} />
          </ChartFigure>
        </ChartGroup>
      </ChartGrid>
    );
  },
  (a, b) => a.stamp === b.stamp
);

/** Each figure with its curves, of which the last one is the highest. */
const courses: Array<{ name: string; curves: Array<[value: Value, look?: Look, word?: string]>; slo?: boolean }> = [
  {
    name: figures.ttft.name,
    curves: [
      ['ttft_mean', 'solid', 'mean'],
      ['ttft_p95', 'dashed', 'p95'],
    ],
    slo: true,
  },
  { name: figures.output_tokens_per_second.name, curves: [['output_tokens_per_second']] },
  { name: figures.kv_hit_ratio.name, curves: [['kv_hit_ratio']] },
];

function legendOf(points: HistoryPoint[]): LegendItem[] {
  return [
    ...servingsOf(points).map((one) => ({ key: servingName(one), tone: one.mode, words: servingName(one) })),
    { key: 'mean', words: 'mean' },
    { key: 'p95', look: 'dashed', words: 'p95' },
    ...(points.some(({ settling }) => settling) ? [{ key: 'settling', ...SETTLING, words: 'settling' }] : []),
  ];
}
