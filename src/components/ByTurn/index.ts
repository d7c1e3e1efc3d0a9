export { ByTurn } from './ByTurn';
export { TurnChart } from './TurnChart';
