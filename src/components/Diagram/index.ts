/** The elements of the drawings. */
export { Box, ButtonBox, Words, type Rect } from './Box';
export { Arrow, Diagram, type LineKind } from './Diagram';
export { useReducedMotion } from './useReducedMotion';
export { useTarget, type TargetFacts } from './useTarget';
