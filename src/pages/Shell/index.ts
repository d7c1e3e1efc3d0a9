export { Header, Present, ViewTools } from './Header';
export { Navigation } from './Navigation';
export { PageRoutes } from './PageRoutes';
export { StartStop } from './StartStop';
export { useBooth } from './useBooth';
export { useCurrentPage } from './useCurrentPage';
export { useStageKey } from './useStageKey';
