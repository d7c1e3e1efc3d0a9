import { figures, type LaneSnapshot, type Settings } from '../../client';
import { figureFormats, meanTTFT, percentileName } from '../../lib/figures';
import { DASH, digits, MS, NOT_REPORTED, type Format } from '../../lib/format';
import type { Known } from '../../lib/known';
import { sloLevel, type SLOLevel } from '../../lib/slo';

/** One of the large figures, of the step. */
export interface Figure {
  name: string;
  /** The value without its unit; a dash without one. */
  text: string;
  unit: string;
  /** Why there is no value, or none that can be judged so far. */
  tag?: string;
  slo?: SLOLevel;
}

interface FigureInfo {
  name: string;
  format: Format;
  value(lane: LaneSnapshot): number | undefined;
  slo?(value: number, lane: LaneSnapshot, settings: Settings): SLOLevel | undefined;
}

const infos = {
  ttft_mean: { name: meanTTFT.name, format: MS, value: ({ baseline }) => baseline.live.ttft.mean },
  ttft_p50: { name: percentileName('ttft', 'p50'), format: MS, value: ({ baseline }) => baseline.live.ttft.p50 },
  ttft_p95: {
    name: percentileName('ttft', 'p95'),
    format: MS,
    value: ({ baseline }) => baseline.live.ttft.p95,
    slo: (value, { baseline, window }, { slo }) =>
      sloLevel(value, slo.ttft, baseline.live.ttft.p95_error, false, window.error_ratio),
  },
  output_tokens_per_second: {
    name: figures.output_tokens_per_second.name,
    format: figureFormats.output_tokens_per_second,
    value: ({ baseline }) => baseline.live_output_tokens_per_second,
  },
  kv_hit_ratio: {
    name: figures.kv_hit_ratio.name,
    format: figureFormats.kv_hit_ratio,
    value: ({ baseline }) => baseline.live_kv_hit_ratio,
  },
} satisfies Record<string, FigureInfo>;

/** One of the figures. */
export type StageFigure = keyof typeof infos;

/**
 * Returns a figure of a lane's step, of the turns that the comparisons rest on. Only a running workload has figures,
 * and only those of a settled step are judged.
 */
export function figureOf(key: StageFigure, known: Pick<Known, 'lane' | 'settings'> | undefined): Figure {
  const { name, format, value: read, slo }: FigureInfo = infos[key];
  if (!known?.lane.state.running) {
    return { name, text: DASH, unit: '', tag: known && known.lane.state.phase };
  }
  const { lane, settings } = known;
  const value = read(lane);
  const settling = lane.state.settling ? 'settling' : undefined;
  if (value === undefined) {
    const isSilent = key === 'kv_hit_ratio' && lane.kv.not_reported !== undefined;
    return {
      name,
      text: isSilent ? NOT_REPORTED : DASH,
      unit: '',
      tag: isSilent ? undefined : (settling ?? 'no data yet'),
    };
  }
  const shown = { name, text: digits(value, format), unit: format.unit ?? '' };
  if (lane.state.phase !== 'running') {
    return { ...shown, tag: lane.state.phase };
  }
  if (settling) {
    return { ...shown, tag: settling };
  }
  const level = slo?.(value, lane, settings);
  return level === 'withheld' ? { ...shown, tag: 'SLO withheld: own error' } : { ...shown, slo: level };
}

/** Whether a figure cannot be read so far. It is shown dimmed. */
export function isFaint({ text, tag }: Figure): boolean {
  return text === DASH || tag !== undefined;
}
