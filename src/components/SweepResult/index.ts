export { Findings } from './Findings';
export { SweepBar } from './SweepBar';
export { SpanTable } from './SpanTable';
export { SweepFigures } from './SweepFigures';
export { SweepResult, type SweepPart } from './SweepResult';
export { hasEnded, useRenewSweeps, useSweep, useSweepList, withNewest } from './useSweeps';
export { isShare, metricName, metricValue, range } from './metrics';
