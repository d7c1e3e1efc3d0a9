import type { BaselineRow, ModeState, SweepRequest, SweepSpan, SweepSummary } from '../../client';
import type { RowFigure } from '../../lib/figures';
import { compareLevels, isWithin } from '../../lib/level';
import { modeKey, modeText } from '../../lib/names';
import { drawLevels, type Drawing, type LevelLine } from '../Chart';
import { metrics, type Metric } from './metrics';

/**
 * Returns the line of a figure in each mode of some rows, measured ones with their intervals. Recorded values are
 * dashed. A mode under several speculations has lines of several styles.
 */
export function linesOf(rows: BaselineRow[], { value, interval }: RowFigure, isRecorded = false): LevelLine[] {
  const modes = [...new Map(rows.map((row) => [modeKey(row), row]))];
  return modes.map(([key, row], i) => {
    const isOther = modes.slice(0, i).some(([, { mode }]) => mode === row.mode);
    const look = isRecorded ? 'dashed' : isOther ? 'rings' : 'solid';
    return {
      key: `${look} ${key}`,
      name: `${modeText(row)}${isRecorded ? ', recorded' : ''}`,
      tone: row.mode,
      look,
      dots: !isRecorded,
      values: rows
        .filter((one) => modeKey(one) === key)
        .map((one) => ({ level: one.concurrency, value: value(one), band: isRecorded ? undefined : interval(one) })),
    };
  });
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

/** One metric against the level. */
interface SweepCurve extends Drawing {
  metric: Metric;
}

/** Returns the curves of a sweep's measurements, beside recorded rows. A metric without values has none. */
export function curvesOf(rows: BaselineRow[], recorded: BaselineRow[], request: SweepRequest): SweepCurve[] {
  const levels = [...(request.levels ?? []), ...rows.map(({ concurrency }) => concurrency)];
  return metrics
    .filter(({ drawn, value }) => drawn && rows.some((row) => value(row) !== undefined))
    .map((metric) => {
      const lines = [...linesOf(recorded, metric, true), ...linesOf(rows, metric)];
      return { metric, ...drawLevels(metric, lines, levels, request.slo) };
    });
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
