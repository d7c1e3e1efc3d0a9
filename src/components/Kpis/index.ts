export { Kpis } from './Kpis';
export { unavailable } from './model';
export { Percentiles } from './Percentiles';
