export { Comparison, type ComparisonOptions } from './Comparison';
export { toModel, type Cell, type Standing, type TableModel } from './model';
export { Notes, SLONotes } from './Notes';
export { SLOMark, type TextSize } from './Table';
