export { Imitation } from './Imitation';
export { ClientVerdict, SnapshotAge, Status, Troubles } from './Status';
