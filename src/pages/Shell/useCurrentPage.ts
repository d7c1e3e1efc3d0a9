import { matchPath, useLocation } from 'react-router-dom';

import { usePagePath } from '../navigation';
import { pages, type Page } from '../registry';

/** Returns the page of the address; undefined where there is none. */
export function useCurrentPage(): Page | undefined {
  const { pathname } = useLocation();
  const pagePath = usePagePath();
  return pages.find(({ path }) => matchPath(pagePath(path), pathname) !== null);
}
