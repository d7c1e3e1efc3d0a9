export { CautionMark } from './CautionMark';
export { cautionText, cautionWord, evidences, nameOfLane, SIDES, sideNames, standing, type SideKey } from './model';
export { Pairs } from './Pairs';
export { PairsOfLanes } from './PairsOfLanes';
