export { isOfShape, isRecorded } from './model';
export { Traffic } from './Traffic';
