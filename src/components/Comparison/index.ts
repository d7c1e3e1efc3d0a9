export { Comparison, type ComparisonOptions } from './Comparison';
export type { TextSize } from './Table';
