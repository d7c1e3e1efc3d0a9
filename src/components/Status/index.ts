export { Imitation } from './Imitation';
export { SnapshotAge, Status, Troubles } from './Status';
