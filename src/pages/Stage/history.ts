import { SETTLING, type ChartLine, type Look, type Mark, type Span } from '../../components/Chart';
import type { HistoryPoint, LaneSnapshot } from '../../client';
import { MS, PERCENT, type Format } from '../../lib/format';
import { servingName, speculationName } from '../../lib/names';

/** The length of a curve, in milliseconds. */
export const SPAN = 600_000;

/** The silence after which a curve has a gap, in milliseconds. A point a second is due. */
const GAP = 3500;

/** The least distance of points, in milliseconds. Snapshots also arrive in between, on a change of state. */
const LEAST = 900;

/** Returns the point of a snapshot, in the form of the load generator's history. */
export function pointOf(time: string, { state, window, kv }: LaneSnapshot): HistoryPoint {
  const { running, settling, concurrency, arm, mode, speculation } = state;
  return {
    time,
    running,
    settling: settling || undefined,
    concurrency: concurrency.actual,
    arm,
    mode,
    speculation,
    ttft_mean: running ? window.metrics.ttft.mean : undefined,
    ttft_p50: running ? window.metrics.ttft.p50 : undefined,
    ttft_p95: running ? window.metrics.ttft.p95 : undefined,
    output_tokens_per_second: running ? window.output_tokens_per_second : undefined,
    kv_hit_ratio: running ? kv.hit_ratio : undefined,
  };
}

const at = ({ time }: HistoryPoint) => Date.parse(time);

/** Adds a point, and drops those older than the curve. */
export function withPoint(points: HistoryPoint[], point: HistoryPoint): HistoryPoint[] {
  const last = points.at(-1);
  if (last && at(point) - at(last) < LEAST) {
    return points;
  }
  return trim([...points, point]);
}

/**
 * Replaces observed points by the load generator's of the same time. Observed points before or after are kept: the load
 * generator may have been restarted, or may have continued since its answer.
 */
export function merge(seen: HistoryPoint[], kept: HistoryPoint[]): HistoryPoint[] {
  if (kept.length === 0) {
    return seen;
  }
  const [first, last] = [at(kept[0]), at(kept[kept.length - 1])];
  const before = seen.filter((point) => at(point) <= first - LEAST);
  const after = seen.filter((point) => at(point) >= last + LEAST);
  return trim([...before, ...kept, ...after]);
}

function trim(points: HistoryPoint[]): HistoryPoint[] {
  const oldest = at(points[points.length - 1]) - SPAN;
  const first = points.findIndex((point) => at(point) >= oldest);
  return first > 0 ? points.slice(first) : points;
}

/** A value that has a curve. */
export type Value = 'ttft_mean' | 'ttft_p95' | 'output_tokens_per_second' | 'kv_hit_ratio';

/** The format of each value that has a curve. */
export const formats: Record<Value, Format> = {
  ttft_mean: MS,
  ttft_p95: MS,
  output_tokens_per_second: {},
  kv_hit_ratio: PERCENT,
};

/** Returns a point of each arm, or of each mode where there are no arms. */
export function servingsOf(points: HistoryPoint[]): HistoryPoint[] {
  return Array.from(new Map(points.map((point) => [servingName(point), point])).values());
}

/**
 * Returns the curve of a value, with a line for each arm or mode, and gaps where it was not measured or no answer
 * arrived. Until a step has settled, it is one dotted line. The suffix is added to the name of each line.
 */
export function linesOf(points: HistoryPoint[], value: Value, look?: Look, word?: string): ChartLine[] {
  const named = (name: string) => (word ? `${name} ${word}` : name);
  const settled = new Map<string, ChartLine>();
  const settling: ChartLine = { key: `${value} settling`, name: named('settling'), ...SETTLING, points: [] };
  const lineOf = (point: HistoryPoint): ChartLine => {
    const own = servingName(point);
    const line = settled.get(own) ?? { key: `${value} ${own}`, name: named(own), tone: point.mode, look, points: [] };
    settled.set(own, line);
    return line;
  };
  let last: { line?: ChartLine; now: number } = { now: 0 };
  for (const point of points) {
    const now = at(point);
    const y = point[value];
    const line = y === undefined ? undefined : point.settling ? settling : lineOf(point);
    if (last.line !== line || now - last.now > GAP) {
      last.line?.points.push([last.now + 1, undefined]);
    }
    line?.points.push([now, y]);
    last = { line, now };
  }
  return settling.points.length > 0 ? [...settled.values(), settling] : [...settled.values()];
}

/** The share of a mode's settled values that its axis is certain to hold, and the room above them, as a factor. */
const CALM = { share: 0.75, room: 1.5 };

/**
 * Returns the largest value on the axis of a curve: some room above settled values, without a mode's short outliers,
 * and the newest value of a settled step in any case. Without settled values, it is undefined.
 */
export function ceilingOf(points: HistoryPoint[], value: Value): number | undefined {
  const settled = points.filter((point) => !point.settling && point[value] !== undefined);
  const tops = servingsOf(settled).map((serving) => {
    const own = settled.filter((point) => servingName(point) === servingName(serving));
    const ascending = own.map((point) => point[value] ?? 0).sort((a, b) => a - b);
    return CALM.room * ascending[Math.floor(CALM.share * (ascending.length - 1))];
  });
  const newest = points.at(-1);
  const current = newest?.settling ? undefined : newest?.[value];
  return tops.length > 0 ? Math.max(...tops, current ?? 0) : undefined;
}

/** Returns the times at which the arm or the mode changed, with the new one. */
export function changesOf(points: HistoryPoint[]): Mark[] {
  return points.flatMap((point, i) => {
    const before = points[i - 1];
    const isSame = before && servingName(before) === servingName(point);
    if (!before || (isSame && before.speculation === point.speculation)) {
      return [];
    }
    const text = isSame ? speculationName(point.speculation) : servingName(point);
    return [{ at: at(point), text: `→ ${text}`, tone: point.mode }];
  });
}

/** The least range of the axis, in milliseconds. */
const LEAST_SPAN = 120_000;

/** Returns the axis of the last ten minutes, or of the shorter history. */
export function spanOf(points: HistoryPoint[], now: number): Span {
  const first = points[0] ? at(points[0]) : now;
  return { from: Math.min(Math.max(first, now - SPAN), now - LEAST_SPAN), to: now };
}
