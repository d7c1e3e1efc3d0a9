export { Benchmark } from './Benchmark';
