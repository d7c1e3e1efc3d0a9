export { Loading } from './Loading';
export { LoadProblem, NotLoaded } from './NotLoaded';
