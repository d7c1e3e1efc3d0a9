export { Workers } from './Workers';
