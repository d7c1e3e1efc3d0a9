export { SnapshotAge, Status, Troubles } from './Status';
