export { Caution } from './Caution';
export { cautionText, nameOfLane, SIDES, sideNames, standing, type SideKey } from './model';
export { Pairs, PairsOfLanes } from './Pairs';
