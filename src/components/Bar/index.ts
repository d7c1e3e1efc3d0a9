export { Bar } from './Bar';
