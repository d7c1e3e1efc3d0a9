import type { BaselineRow, Mode, Settings } from '../../client';
import {
  scaleFrom,
  type CurveBand,
  type CurveLine,
  type CurveLook,
  type Scale,
  type Tick,
} from '../../components/Curve';
import { digits } from '../../lib/format';
import { modeText } from '../../lib/names';

import { modeKey } from './form';
import { metrics, type Metric } from './metrics';

/** A mode with its line. */
export interface Line {
  key: string;
  name: string;
  tone: Mode;
  look: CurveLook;
}

/** One metric against concurrency. */
export interface Drawing {
  metric: Metric;
  lines: CurveLine[];
  bands: CurveBand[];
  y: Scale;
  limit?: Tick;
  /** Whether some values are above the axis, and not drawn. */
  isCut: boolean;
}

const looks: CurveLook[] = ['solid', 'dashed', 'rings'];

/** The modes of rows; a mode under several speculations has lines of several looks. */
export function linesOf(rows: BaselineRow[]): Line[] {
  const found: Line[] = [];
  for (const row of rows) {
    const key = modeKey(row);
    if (!found.some((line) => line.key === key)) {
      const nth = found.filter(({ tone }) => tone === row.mode).length;
      found.push({ key, name: modeText(row), tone: row.mode, look: looks[Math.min(nth, looks.length - 1)] });
    }
  }
  return found;
}

/** An axis of TTFT ends at so many times the objective, so that one mode that runs away does not flatten the other. */
const RUNAWAY = 4;

/** Draws each metric that some row has. */
export function drawingsOf(rows: BaselineRow[], slo: Settings['slo'] | undefined): Drawing[] {
  return metrics
    .filter((metric) => metric.drawn && rows.some((row) => metric.value(row) !== undefined))
    .map((metric) => draw(metric, rows, slo));
}

function draw(metric: Metric, rows: BaselineRow[], slo: Settings['slo'] | undefined): Drawing {
  const { format, value, interval } = metric;
  const objective = metric.slo && slo?.[metric.slo];
  const limit = objective === undefined ? undefined : { at: objective, text: `SLO ${digits(objective, format)}` };
  const highest = Math.max(0, ...rows.map((row) => Math.max(value(row) ?? 0, interval(row)?.[1] ?? 0)));
  const ceiling = metric.key.startsWith('ttft') && slo ? RUNAWAY * slo.ttft : Infinity;
  const top = Math.max(Math.min(highest, ceiling), limit ? 1.1 * limit.at : 0);
  const lines = linesOf(rows).map(({ key, tone, look }) => ({
    key,
    tone,
    look,
    own: rows.filter((row) => modeKey(row) === key).sort((a, b) => a.concurrency - b.concurrency),
  }));
  const y = scaleFrom(top, 4, (at) => digits(at, { ...format, decimals: 0 }));
  return {
    metric,
    y,
    limit,
    isCut: highest > y.max,
    lines: lines.map(({ own, ...line }) => ({
      ...line,
      dots: true,
      points: own.map((row): [number, number | undefined] => [row.concurrency, value(row)]),
    })),
    bands: lines
      .map(({ own, key, tone }) => ({
        key,
        tone,
        points: own.flatMap((row): CurveBand['points'] => {
          const [low, high] = interval(row) ?? [];
          return low === undefined || high === undefined ? [] : [[row.concurrency, low, high]];
        }),
      }))
      .filter(({ points }) => points.length > 0),
  };
}
