export { Comparison, type ComparisonOptions } from './Comparison';
export { SLOMark, sloMarks, type TextSize } from './Table';
