import type { LaneSnapshot, Settings } from '../../client';
import { DASH, digits, MS, NOT_REPORTED, PERCENT, type Format } from '../../lib/format';
import type { Known } from '../../lib/known';
import { sloLevel, type SLOLevel } from '../../lib/slo';

/** One of the large figures, over the last 60 s. */
export interface Figure {
  name: string;
  /** Without its unit; a dash where there is none. */
  text: string;
  unit: string;
  /** Why there is no value, or none that can be judged yet. */
  tag?: string;
  slo?: SLOLevel;
}

/** The names of the figures, which are those of the tables. */
export type FigureName = 'TTFT p50' | 'TTFT p95' | 'Output tokens/s' | 'KV hit rate';

interface FigureInfo {
  format: Format;
  value(lane: LaneSnapshot): number | undefined;
  slo?(value: number, lane: LaneSnapshot, settings: Settings): SLOLevel | undefined;
}

const infos: Record<FigureName, FigureInfo> = {
  'TTFT p50': { format: MS, value: ({ window }) => window.metrics.ttft.p50 },
  'TTFT p95': {
    format: MS,
    value: ({ window }) => window.metrics.ttft.p95,
    slo: (value, { window }, { slo }) => sloLevel(value, slo.ttft, window.metrics.ttft.p95_error),
  },
  'Output tokens/s': { format: {}, value: ({ window }) => window.output_tokens_per_second },
  'KV hit rate': { format: PERCENT, value: ({ kv }) => kv.hit_ratio },
};

/** The figures that are shown where there is room for all. */
export const FIGURES = Object.keys(infos) as FigureName[];

/**
 * A figure of a lane, over the last 60 s, as its curve ends. Only a workload that runs has any, and only in a settled
 * step are they judged.
 */
export function figureOf(name: FigureName, known: Pick<Known, 'lane' | 'settings'> | undefined): Figure {
  const { format, value: read, slo } = infos[name];
  if (!known?.lane.state.running) {
    return { name, text: DASH, unit: '', tag: known && known.lane.state.phase };
  }
  const { lane, settings } = known;
  const value = read(lane);
  if (value === undefined) {
    const isSilent = name === 'KV hit rate' && lane.kv.not_reported !== undefined;
    return { name, text: isSilent ? NOT_REPORTED : DASH, unit: '', tag: isSilent ? undefined : 'no data yet' };
  }
  const shown = { name, text: digits(value, format), unit: format.unit ?? '' };
  if (lane.state.phase !== 'running') {
    return { ...shown, tag: lane.state.phase };
  }
  return lane.state.settling ? { ...shown, tag: 'settling' } : { ...shown, slo: slo?.(value, lane, settings) };
}

/** Whether nothing is to be read from a figure yet: it stands back. */
export function isFaint({ text, tag }: Figure): boolean {
  return text === DASH || tag !== undefined;
}
