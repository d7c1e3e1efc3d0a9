export { ByTurn } from './ByTurn';
export { TurnCurve } from './TurnCurve';
