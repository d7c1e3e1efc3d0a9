export { DataTable, UNSTACKED, type Column } from './DataTable';
