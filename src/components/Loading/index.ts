export { Loading } from './Loading';
