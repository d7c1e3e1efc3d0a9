export { Controls } from './Controls';
export { ModeSwitch } from './ModeSwitch';
export { failures, useOperator } from './useOperator';
export { SweepNotice as Taken } from './Held';
