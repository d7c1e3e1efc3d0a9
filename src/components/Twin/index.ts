export { CautionMark } from './CautionMark';
export { cautionText, cautionWord, evidences, nameOfLane, SIDES, sideNames, type SideKey } from './model';
export { Pairs } from './Pairs';
export { PairsOfLanes } from './PairsOfLanes';
