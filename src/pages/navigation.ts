import { createContext, useCallback, useContext } from 'react';

/** The base of the pages in their host's addresses, without a slash at its end: "" is the root. */
export const PageBase = createContext('');

/** Returns the address of a page's path, such as "conversations/12", for a Link. */
export function usePagePath(): (path: string) => string {
  const base = useContext(PageBase);
  return useCallback((path: string) => (path === '' && base !== '' ? base : `${base}/${path}`), [base]);
}
