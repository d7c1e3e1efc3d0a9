import { useCallback, useSyncExternalStore } from 'react';

/** Which of the two colour schemes is shown. */
export type Scheme = 'dark' | 'light';

const KEY = 'kvbooth.scheme';
const CHANGED = 'kvbooth-scheme';
const SYSTEM = '(prefers-color-scheme: light)';
const PRINT = 'print';

/** What was chosen where nothing may be stored. */
let unstored: Scheme | undefined;

/** The scheme that was chosen in this browser, or else the system's, and a way to choose. */
export function useScheme(): [Scheme, (scheme: Scheme) => void] {
  const scheme = useSyncExternalStore(subscribe, current);
  const choose = useCallback((chosen: Scheme) => {
    store(chosen);
    window.dispatchEvent(new Event(CHANGED));
  }, []);
  return [scheme, choose];
}

function store(chosen: Scheme) {
  try {
    localStorage.setItem(KEY, chosen);
  } catch {
    unstored = chosen;
  }
}

function stored(): string | null {
  try {
    return localStorage.getItem(KEY);
  } catch {
    return null;
  }
}

/** On paper, which has no background, always the light one. */
function current(): Scheme {
  if (window.matchMedia(PRINT).matches) {
    return 'light';
  }
  const chosen = unstored ?? stored();
  if (chosen === 'dark' || chosen === 'light') {
    return chosen;
  }
  return window.matchMedia(SYSTEM).matches ? 'light' : 'dark';
}

function subscribe(changed: () => void): () => void {
  const media = [SYSTEM, PRINT].map((query) => window.matchMedia(query));
  media.forEach((one) => one.addEventListener('change', changed));
  window.addEventListener(CHANGED, changed);
  window.addEventListener('storage', changed); // another tab
  return () => {
    media.forEach((one) => one.removeEventListener('change', changed));
    window.removeEventListener(CHANGED, changed);
    window.removeEventListener('storage', changed);
  };
}
