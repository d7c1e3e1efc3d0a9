export { Kpis } from './Kpis';
export { unavailable } from './model';
