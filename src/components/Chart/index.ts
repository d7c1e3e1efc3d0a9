export { Chart } from './Chart';
export { ChartFigure, ChartGrid, ChartGroup, type LegendItem } from './ChartGrid';
export { drawLevels, type LevelLine } from './levels';
export { LineSign } from './LineSign';
export { loadDrawn } from './loadDrawn';
export { SETTLING } from './tones';
export type { ChartBand, ChartLine, Look, Mark, Point, Sign, Span } from './types';
export { viewOf, type Drawing } from './view';
