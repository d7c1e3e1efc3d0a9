/** What the drawings are made of. */
export { Box, ButtonBox, Words, type Rect, type Tone } from './Box';
export { Arrow, Diagram, type LineKind } from './Diagram';
export { getDiagramStyles } from './styles';
export { useReducedMotion } from './useReducedMotion';
export { useTarget, type TargetFacts } from './useTarget';
