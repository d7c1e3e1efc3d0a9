export { Caution } from './Caution';
export { cautionText, nameOfLane, SIDES, sideNames, standing, type SideKey } from './model';
export { Pairs } from './Pairs';
export { PairsOfLanes } from './PairsOfLanes';
