import { figures, type BaselineRow, type Settings } from '../client';

/** The level of a value against its service level objective; withheld where the load generator's own error decides. */
export type SLOLevel = 'met' | 'near' | 'missed' | 'withheld';

/** The share of a threshold from which a value that meets it counts as near. */
const NEAR = 0.9;

/** The share of failed turns up to which a p95 of the others decides. */
const MOST_FAILED = 0.05;

/** Returns the level of a p95 of a row, which knows its own error and the share of its turns that failed. */
export function sloOfRow(
  { errors, error_ratio }: BaselineRow,
  key: 'ttft' | 'tpot',
  value: number | undefined,
  slo: Partial<Settings['slo']> | undefined
): SLOLevel | undefined {
  return sloLevel(value, slo?.[key], errors?.[key].p95, figures[key].bothWays, error_ratio);
}

/**
 * Returns the level of a value, by the one rule of SLO colors: an objective is met at the threshold itself, and near
 * from 90 % of it. All values have the same unit. The level is undefined without a value or a threshold. It is withheld
 * where the load generator's own error could change it: by that amount a TTFT may be too large, a TPOT also too small.
 * Where more than 5 % of the turns failed, it is missed whatever the value, which is a p95 of the others.
 */
export function sloLevel(
  value: number | undefined,
  threshold: number | undefined,
  error = 0,
  bothWays = false,
  errorRatio = 0
): SLOLevel | undefined {
  if (value === undefined || threshold === undefined || threshold <= 0) {
    return undefined;
  }
  if (errorRatio > MOST_FAILED) {
    return 'missed';
  }
  if (value > threshold) {
    return value - error > threshold ? 'missed' : 'withheld';
  }
  if (bothWays && value + error > threshold) {
    return 'withheld';
  }
  return value >= NEAR * threshold ? 'near' : 'met';
}
