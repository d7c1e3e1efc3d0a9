/**
 * The one way to the data: inside Grafana through the app's backend, elsewhere directly to the sidecar. No other module
 * depends on which of the two is used.
 */
export * from './calls';
export { type Client, lanePath } from './client';
export { ClientProvider, type Live, ofLane, useClient, useLive, useLiveValue, useMe } from './context';
export { type FigureInfo, type FigureKey, figures, type TimeKey, times, turnFields } from './figures';
export { type Limit, type LimitName, limits } from './limits';
export { asProblem, Problem } from './problem';
export type * from './types';
export { useBaselines, useRenewBaselines } from './useBaselines';
export { type Polled, usePolled } from './usePolled';
export { useTwin, useSetTwin } from './useTwin';
export { type ShapeInfo, type ShapeNumber, shapeNumbers, shapes } from './shapes';
export { patched, type WorkloadSetting, type WorkloadSettingName, workloadSettings } from './workload';
