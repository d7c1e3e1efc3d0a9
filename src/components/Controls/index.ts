export { Controls } from './Controls';
export { ModeSwitch } from './ModeSwitch';
export { failures } from './Operate';
export { SweepNotice as Taken } from './Held';
