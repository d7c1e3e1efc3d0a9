export { Caution } from './Caution';
export { cautionText, evidences, nameOfLane, SIDES, sideNames, standing, type SideKey } from './model';
export { Pairs } from './Pairs';
export { PairsOfLanes } from './PairsOfLanes';
