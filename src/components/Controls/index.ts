export { Controls } from './Controls';
export { both } from './ModeProgress';
export { ModeSwitch } from './ModeSwitch';
export { failures } from './Operate';
