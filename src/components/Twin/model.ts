import {
  figures,
  type FigureInfo,
  type FigureKey,
  type PairedMetric,
  type Twin,
  type TwinEvidence,
  type TwinSide,
} from '../../client';
import { meanTTFT, percentileName } from '../../lib/figures';
import { DASH, directed, MS, number, percent, signed, valueWithUnit } from '../../lib/format';
import { modeText } from '../../lib/names';
import { capital } from '../../lib/text';

/** The two sides of a screen, in this order. */
export const SIDES = ['a', 'b'] as const;
/** One of the two sides. */
export type SideKey = (typeof SIDES)[number];

/** Returns the names of the sides: the mode, and also the lane where both have the same mode. */
export function sideNames({ a, b }: Pick<Twin, SideKey>): Record<SideKey, string> {
  const name = (side: TwinSide) => modeText(side);
  return name(a) === name(b)
    ? { a: `${name(a)} (${a.lane})`, b: `${name(b)} (${b.lane})` }
    : { a: name(a), b: name(b) };
}

/** Returns the label of a lane. */
export function nameOfLane(twin: Pick<Twin, SideKey>, lane: string): string {
  const names = sideNames(twin);
  return lane === twin.a.lane ? names.a : lane === twin.b.lane ? names.b : lane;
}

/** Returns the caution as sentences; undefined where there is none. */
export function cautionText({ caution }: Pick<Twin, 'caution'>): string | undefined {
  return caution && capital(caution);
}

/** Describes the known facts of the clusters, and thus the cause of a difference. */
export const evidences: Record<TwinEvidence, string> = {
  none:
    'It is not yet known whether the two clusters differ in more than their modes. To find ' +
    'out, run the same mode on both for a while, or swap the modes half-way.',
  alike:
    'With the same mode on both, the clusters showed no difference of interest. Differences ' +
    'now can be attributed to the mode.',
  differ:
    'With the same mode on both, the clusters differed. Differences now are not due to the ' +
    'mode alone: swap the modes half-way to cancel that out.',
  swapped:
    'The figures combine both arrangements: each column is one mode, half of it from each ' +
    'lane, so that differences between the clusters cancel out.',
  shared:
    'The same workers serve both lanes. The lanes affect each other, so no figure here shows ' +
    'what one of them could do alone.',
};

interface MetricInfo {
  figure: FigureKey;
  name: string;
}

const infos: Record<string, MetricInfo> = {
  ttft: { figure: 'ttft', name: meanTTFT.name },
  ttft_p95: { figure: 'ttft', name: percentileName('ttft', 'p95') },
  tpot: { figure: 'tpot', name: `${figures.tpot.name}, mean` },
  latency: { figure: 'latency', name: `${figures.latency.name}, mean` },
  kv_hit_ratio: { figure: 'kv_hit_ratio', name: figures.kv_hit_ratio.name },
};

function figureOf(metric: string): FigureInfo | undefined {
  return infos[metric] && figures[infos[metric].figure];
}

/** A metric of pairs as a person says it. */
export function pairedName(metric: string): string {
  return infos[metric]?.name ?? metric;
}

/** Formats a value of a metric with its unit. */
export function pairedValue(metric: string, value: number | undefined): string {
  if (figureOf(metric)?.unit === 'ratio') {
    return percent(value);
  }
  return valueWithUnit(value, infos[metric] ? MS : { decimals: 3 });
}

/** Formats the size of a difference, without its sign; that of a ratio in points. */
function size(metric: string, difference: number): string {
  const value = Math.abs(difference);
  return figureOf(metric)?.unit === 'ratio' ? `${number(100 * value, 1)} points` : pairedValue(metric, value);
}

/**
 * The outcome of a difference: the side with the better values, none where chance could explain it, undefined while it
 * is not known.
 */
type Standing = SideKey | 'same' | undefined;

/** Returns which side is better: undefined without an interval, and 'same' where it contains zero. */
export function standing({ metric, interval }: PairedMetric): Standing {
  if (!interval) {
    return undefined;
  }
  const [low, high] = interval;
  if (low <= 0 && high >= 0) {
    return 'same';
  }
  const more = low > 0;
  return more === (figureOf(metric)?.better === 'higher') ? 'b' : 'a';
}

/** Describes the difference from side b's point of view. */
export function differenceWords(paired: PairedMetric, names: Record<SideKey, string>): string {
  const { metric, difference } = paired;
  if (difference === undefined) {
    return 'No pairs yet.';
  }
  const stands = standing(paired);
  if (stands === 'same') {
    return 'Not certain: chance could explain the difference.';
  }
  const [more, less] = figureOf(metric)?.unit === 's' ? ['slower', 'faster'] : ['higher', 'lower'];
  const sentence = `${names.b} is ${directed(size(metric, difference), difference > 0 ? more : less)}`;
  return stands === undefined ? `${sentence}. Too early for an interval.` : `${sentence}.`;
}

/** Formats the 95 % interval of a difference; a dash without one. */
export function intervalWords({ metric, interval }: PairedMetric): string {
  return interval?.map((end) => signed(end, (value) => size(metric, value))).join(' to ') ?? DASH;
}
