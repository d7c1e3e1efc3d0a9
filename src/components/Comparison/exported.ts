import { times, type ClientHealth, type Column, type Comparison, type LaneSnapshot } from '../../client';
import { toCsv, type CsvValue } from '../../lib/csv';
import type { Known } from '../../lib/known';
import { latency, meanTTFT, quantiles, rate, type Figure } from './model';

/** The input of an export of a comparison. */
export interface Exported {
  comparison: Comparison;
  known: Known;
  /** Whether the figures are live. After a loss, only the recorded ones are exported. */
  isLive: boolean;
  /** The size of the load generator's own error, where it is known. */
  client?: ClientHealth;
}

const names = [
  'figure',
  'quantile',
  'unit',
  'source',
  'mode',
  'speculation',
  'concurrency',
  'value',
  'interval_low',
  'interval_high',
  'turns',
  'span_seconds',
  'load_generator_lag_seconds',
  'load_generator_error_seconds',
  'lookup',
  'improvement_percent',
  'improvement_low',
  'improvement_high',
  'outcome',
  'note',
];

type Cells = [figure: string, quantile: string, unit: string];

/** All figures, with their cells. */
const figures: Array<[Cells, Figure]> = [
  [['ttft', 'mean', 'seconds'], meanTTFT],
  ...times.flatMap((key) =>
    quantiles.map((quantile): [Cells, Figure] => [[key, quantile, 'seconds'], latency(key, quantile)])
  ),
  [['output_tokens_per_second', '', 'tokens/s'], rate('output_tokens_per_second')],
  [['requests_per_second', '', 'requests/s'], rate('requests_per_second')],
  [['kv_hit_ratio', '', 'ratio'], rate('kv_hit_ratio')],
];

/**
 * Returns a comparison as a table with a line for each figure: live ones with their intervals, recorded ones with their
 * origin. Times are in seconds.
 */
export function comparisonCsv(exported: Exported): string {
  const { comparison, known, isLive } = exported;
  const { state } = known.lane;
  const runs = isLive && state.phase === 'running';
  const note = comparison.settling ? 'settling' : '';
  const live = (cells: Cells, figure: Figure) => {
    const { value, interval, error, tag } = figure.live({ comparison, lane: known.lane });
    return [
      ...[...cells, 'live', state.mode, state.speculation, comparison.concurrency],
      ...(runs
        ? [value, interval?.[0], interval?.[1], comparison.n, comparison.seconds]
        : Array<undefined>(5).fill(undefined)),
      ...[exported.client?.lag_seconds, runs ? error : undefined, ...Array<undefined>(5).fill(undefined)],
      runs ? [note, tag].filter(Boolean).join('; ') : isLive ? state.phase : 'lost',
    ];
  };
  const recorded = (cells: Cells, figure: Figure, column: Column) => {
    const found = figure.recorded?.(column);
    const gain = runs ? found?.improvement : undefined;
    return [
      ...[...cells, comparison.name, column.mode, column.speculation, comparison.concurrency],
      ...[found?.value, undefined, undefined, column.n, undefined, column.lag_seconds, found?.error, found?.lookup],
      ...[gain?.percent, gain?.interval?.[0], gain?.interval?.[1], gain?.outcome, undefined],
    ];
  };
  const rows: CsvValue[][] = figures.flatMap(([cells, figure]) => [
    live(cells, figure),
    ...comparison.columns.map((column) => recorded(cells, figure, column)),
  ]);
  return toCsv(names, rows);
}

/** Returns a comparison as the API has it, with the measured deployment. Times are in seconds. */
export function comparisonJson({ comparison, known, isLive, client }: Exported): string {
  const { lane, settings, time } = known;
  const { target, state }: LaneSnapshot = lane;
  return JSON.stringify({ time, live: isLive, target, state, slo: settings.slo, client, comparison }, undefined, 2);
}
