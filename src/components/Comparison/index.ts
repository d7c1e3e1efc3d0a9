export { Comparison, type ComparisonOptions } from './Comparison';
export { Notes, SLONotes } from './Notes';
export { SLOMark, type TextSize } from './Table';
