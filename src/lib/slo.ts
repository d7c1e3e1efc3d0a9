/** How a value stands to its service level objective. */
export type SLOLevel = 'met' | 'near' | 'missed';

/** The share of a threshold from which a value that meets it is near it. */
const NEAR = 0.9;

/**
 * The one rule of SLO colours: an objective is met at the threshold itself, and
 * near from 90 % of it. All in the same unit. Without a value or a threshold
 * there is nothing to say, nor where the load generator's own error could change it:
 * by that much a TTFT may be too large, a TPOT also too small.
 */
export function sloLevel(
  value: number | undefined,
  threshold: number | undefined,
  error = 0,
  bothWays = false
): SLOLevel | undefined {
  if (value === undefined || threshold === undefined || threshold <= 0) {
    return undefined;
  }
  if (value > threshold) {
    return value - error > threshold ? 'missed' : undefined;
  }
  if (bothWays && value + error > threshold) {
    return undefined;
  }
  return value >= NEAR * threshold ? 'near' : 'met';
}
