import type { SimulationFigures, SimulationResult } from '../../client';
import { toCsv, type CsvValue } from '../../lib/csv';
import type { Beside, Series } from './series';

const names = ['source', 'of', 'mode', 'concurrency', 'figure', 'unit', 'value', 'low', 'high', 'runs'];

/** The figures of a simulation in the units of the API. */
const units: Record<keyof SimulationFigures, string> = {
  ttft_p50: 'seconds',
  ttft_p95: 'seconds',
  tpot_p50: 'seconds',
  tokens_per_second: 'tokens/s',
  requests_per_second: 'requests/s',
  dropped_per_second: 'turns/s',
  hit_ratio: 'ratio',
  queue: 'requests',
  largest_queue_seconds: 'seconds',
  inflight_spread: 'requests',
  inflight_skew: 'ratio',
  herding_share: 'ratio',
  prefilled_twice_share: 'ratio',
  queued_seconds: 'seconds',
  prefill_seconds: 'seconds',
  decode_seconds: 'seconds',
};

/**
 * Returns the curves as a table with a line for each figure of a level under a mode: simulated ones with the least and
 * the largest over their runs, then the values that they are compared with.
 */
export function curvesCsv(result: SimulationResult, series: Series[], beside: Beside): string {
  const { profile } = result.request;
  const simulated = result.points.flatMap(({ concurrency, mode, seeds, figures }) =>
    (Object.keys(units) as Array<keyof SimulationFigures>).flatMap((figure): CsvValue[][] => {
      const found = figures[figure];
      return found
        ? [['simulated', profile, mode, concurrency, figure, units[figure], found.mean, found.low, found.high, seeds]]
        : [];
    })
  );
  const others = series.flatMap(({ figure: { key }, values }) =>
    values.flatMap(({ source, mode, concurrency, value }): CsvValue[][] =>
      source === 'simulated'
        ? []
        : [[source, beside[source]?.name, mode, concurrency, key, units[key], value, undefined, undefined, undefined]]
    )
  );
  return toCsv(names, [...simulated, ...others]);
}
