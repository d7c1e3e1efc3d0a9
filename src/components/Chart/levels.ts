import type { Settings } from '../../client';
import type { RowFigure } from '../../lib/figures';
import { axisOf, valueOf, type Level } from '../../lib/level';
import type { ChartBand, ChartLine, Point } from './types';
import type { Drawing } from './view';

/** The values of a figure under one mode, against the level. */
export interface LevelLine extends Omit<ChartLine, 'points'> {
  values: Array<{ level: Level; value?: number; band?: [low: number, high: number] }>;
}

/** An axis of TTFT ends at this multiple of its objective, so that one that runs away does not flatten the others. */
const RUNAWAY = 4;

/** Returns the chart of a figure over levels of one kind. A line without values is left out. */
export function drawLevels(
  { key, format, slo: objective }: Pick<RowFigure, 'key' | 'format' | 'slo'>,
  all: LevelLine[],
  levels: Level[],
  slo: Settings['slo'] | undefined
): Drawing {
  const lines = all.filter(({ values }) => values.some(({ value }) => value !== undefined));
  const bands = lines.map(({ key: of, tone, values }): ChartBand => ({
    of,
    tone,
    points: values.flatMap(({ level, band }): ChartBand['points'] =>
      band ? [[valueOf(level), Math.max(0, band[0]), band[1]]] : []
    ),
  }));
  return {
    x: axisOf(levels),
    lines: lines.map(({ values, ...line }) => ({
      ...line,
      points: values.map(({ level, value }): Point => [valueOf(level), value]),
    })),
    bands: bands.filter(({ points }) => points.length > 0),
    format,
    slo: objective && slo?.[objective],
    ceiling: key.startsWith('ttft') && slo ? RUNAWAY * slo.ttft : undefined,
  };
}
