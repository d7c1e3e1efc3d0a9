import type { BaselineRow, Mode, ModeState, SweepRequest, SweepSpan, SweepSummary } from '../../client';
import { compareLevels, isWithin, valueOf } from '../../lib/level';
import { modeKey, modeText } from '../../lib/names';
import type { ChartBand, ChartLine, Drawing, Look } from '../Chart';
import { metrics, type Metric } from './metrics';

/** One metric against concurrency. The bands are the 95 % intervals of the measurements. */
interface SweepCurve extends Omit<Drawing, 'x'> {
  metric: Metric;
}

/** A mode with its line. */
interface Line {
  key: string;
  name: string;
  tone: Mode;
  look: Look;
}

/** The line styles of measurements; recorded values are dashed. */
const looks: Look[] = ['solid', 'rings'];

/** Returns the modes of measured rows, each once. A mode under several speculations has lines of several styles. */
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

/** Whether two kinds of speculation may be compared. “Not recorded” counts as “off”. */
function isLike(a: ModeState, b: ModeState): boolean {
  const served = ({ speculation }: ModeState) => (speculation === 'not_recorded' ? 'off' : speculation);
  return a.mode === b.mode && served(a) === served(b);
}

/**
 * Returns the recorded rows that are comparable with measured ones: of their modes, and of their range of levels.
 * Nothing is interpolated.
 */
export function comparableRows(rows: BaselineRow[], recorded: BaselineRow[] = []): BaselineRow[] {
  const levels = rows.map(({ concurrency }) => concurrency);
  return recorded
    .filter((row) => isWithin(row.concurrency, levels) && rows.some((own) => isLike(own, row)))
    .sort((a, b) => compareLevels(a.concurrency, b.concurrency));
}

/** Returns the recorded row of a measured one's level and mode, if there is one. */
export function recordedFor(row: BaselineRow, recorded: BaselineRow[]): BaselineRow | undefined {
  return recorded.find((other) => other.concurrency === row.concurrency && isLike(row, other));
}

/** An axis of large times ends at this multiple of the objective, so that they do not flatten the others. */
const RUNAWAY = 4;

/** Returns the curves of a sweep's measurements, beside recorded rows. A metric without values has none. */
export function curvesOf(rows: BaselineRow[], recorded: BaselineRow[], slo: SweepRequest['slo']): SweepCurve[] {
  return metrics
    .filter(({ drawn, value }) => drawn && rows.some((row) => value(row) !== undefined))
    .map((metric) => curveOf(metric, rows, recorded, slo));
}

function curveOf(metric: Metric, rows: BaselineRow[], recorded: BaselineRow[], slo: SweepRequest['slo']): SweepCurve {
  const { format, value, interval } = metric;
  const recordedLines = linesOf(recorded).map((line) => ({
    ...line,
    name: `${line.name}, recorded`,
    look: 'dashed' as const,
  }));
  const bands = linesOf(rows).map(({ key, tone, look }): ChartBand => ({
    of: `${look} ${key}`,
    tone,
    points: rows.flatMap((row): ChartBand['points'] => {
      const around = modeKey(row) === key ? interval(row) : undefined;
      return around ? [[valueOf(row.concurrency), Math.max(0, around[0]), around[1]]] : [];
    }),
  }));
  return {
    metric,
    lines: [...drawn(recordedLines, recorded, value), ...drawn(linesOf(rows), rows, value)],
    bands: bands.filter(({ points }) => points.length > 0),
    format,
    slo: metric.slo && slo?.[metric.slo],
    ceiling: metric.key.startsWith('ttft') && slo ? RUNAWAY * slo.ttft : undefined,
  };
}

function drawn(lines: Line[], rows: BaselineRow[], value: Metric['value']): ChartLine[] {
  return lines
    .map(({ key, name, tone, look }): ChartLine => ({
      key: `${look} ${key}`,
      name,
      tone,
      look,
      dots: look !== 'dashed',
      points: rows.filter((row) => modeKey(row) === key).map((row) => [valueOf(row.concurrency), value(row)]),
    }))
    .filter(({ points }) => points.some(([, y]) => y !== undefined));
}

/** Returns the sweep with an id, or the newest of the lane without one. The list is newest first. */
export function chosenOf<T extends Pick<SweepSummary, 'id' | 'lane'>>(
  all: T[],
  lane: string,
  id: string
): T | undefined {
  return id === '' ? all.find((sweep) => sweep.lane === lane) : all.find((sweep) => sweep.id === id);
}

/** Describes the outcome of a span. */
export function spanOutcome({ spoiled, arm }: SweepSpan): string {
  if (spoiled) {
    return `does not count: ${spoiled}`;
  }
  return arm === 'pilot' ? 'pilot, not compared' : 'counts';
}

/** Returns how long a span counted, in seconds. */
export function countedSeconds({ counted_from: from, until }: SweepSpan): number {
  return Math.max(0, (Date.parse(until) - Date.parse(from)) / 1000);
}
