export { Comparison, type ComparisonOptions } from './Comparison';
export { lookupTags, THIS_TARGET, visibleColumns } from './model';
export { Notes, SLONotes } from './Notes';
export { SLOMark, type TextSize } from './Table';
