export { Imitation, ClientVerdict, SnapshotAge, Status, Troubles } from './Status';
