export { SweepResult, type SweepPart } from './SweepResult';
