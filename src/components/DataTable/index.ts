export { DataTable, UNSTACKED } from './DataTable';
