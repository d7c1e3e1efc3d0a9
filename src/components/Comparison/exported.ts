import type { ClientHealth, Column, Comparison, LaneSnapshot } from '../../client';
import { toCsv, type CsvValue } from '../../lib/csv';
import type { Known } from '../../lib/known';

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

const latencies = ['ttft', 'tpot', 'itl', 'latency'] as const;
const quantiles = ['p50', 'p95'] as const;
const rates = [
  ['output_tokens_per_second', 'tokens/s'],
  ['requests_per_second', 'requests/s'],
  ['kv_hit_ratio', 'ratio'],
] as const;

type Found = Column['kv_hit_ratio'];

/**
 * Returns a comparison as a table with a line for each figure: live ones with their intervals, recorded ones with their
 * origin. Times are in seconds.
 */
export function comparisonCsv(exported: Exported): string {
  const { comparison, known, isLive } = exported;
  const { state } = known.lane;
  const runs = isLive && state.phase === 'running';
  const note = comparison.settling ? 'settling' : '';
  const live = (
    figure: string,
    quantile: string,
    unit: string,
    value?: number,
    interval?: number[],
    error?: number,
    estimated = false
  ) => [
    ...[figure, quantile, unit, 'live', state.mode, state.speculation, comparison.concurrency],
    ...(runs
      ? [value, interval?.[0], interval?.[1], comparison.n, comparison.seconds]
      : Array<undefined>(5).fill(undefined)),
    ...[exported.client?.lag_seconds, runs ? error : undefined, ...Array<undefined>(5).fill(undefined)],
    runs ? [note, estimated && 'estimated'].filter(Boolean).join('; ') : isLive ? state.phase : 'lost',
  ];
  const recorded = (figure: string, quantile: string, unit: string, column: Column, found: Found) => {
    const gain = runs ? found.improvement : undefined;
    return [
      ...[figure, quantile, unit, comparison.name, column.mode, column.speculation, comparison.concurrency],
      ...[found.value, undefined, undefined, column.n, undefined, column.lag_seconds, found.error, found.lookup],
      ...[gain?.percent, gain?.interval?.[0], gain?.interval?.[1], gain?.outcome, undefined],
    ];
  };
  const rows: CsvValue[][] = [
    ...latencies.flatMap((figure) =>
      quantiles.flatMap((quantile) => {
        const all = comparison.live[figure];
        const [interval, error] =
          quantile === 'p50' ? [all.p50_interval, all.p50_error] : [all.p95_interval, all.p95_error];
        return [
          live(figure, quantile, 'seconds', all[quantile], interval, error, all.estimated),
          ...comparison.columns.map((column) =>
            recorded(figure, quantile, 'seconds', column, column[figure][quantile])
          ),
        ];
      })
    ),
    ...rates.flatMap(([figure, unit]) => [
      live(figure, '', unit, comparison[`live_${figure}`], comparison[`live_${figure}_interval`]),
      ...comparison.columns.map((column) => recorded(figure, '', unit, column, column[figure])),
    ]),
  ];
  return toCsv(names, rows);
}

/** Returns a comparison as the API has it, with the measured deployment. Times are in seconds. */
export function comparisonJson({ comparison, known, isLive, client }: Exported): string {
  const { lane, settings, time } = known;
  const { target, state }: LaneSnapshot = lane;
  return JSON.stringify({ time, live: isLive, target, state, slo: settings.slo, client, comparison }, undefined, 2);
}
