export { Comparison, type ComparisonOptions } from './Comparison';
export { lookupTags, THIS_TARGET, visibleColumns } from './model';
export { Notes, SLONotes, sloText } from './Notes';
export { SLOValue } from './SLO';
export type { TextSize } from './Table';
