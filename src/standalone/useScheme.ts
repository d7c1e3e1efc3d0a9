import { useCallback, useSyncExternalStore } from 'react';

/** The color scheme in use. */
export type Scheme = 'dark' | 'light';

const KEY = 'kvbooth.scheme';
const CHANGED = 'kvbooth-scheme';
const SYSTEM = '(prefers-color-scheme: light)';
const PRINT = 'print';

/** The choice where the browser stores nothing. */
let unstored: Scheme | undefined;

/** Returns the scheme that was chosen in this browser, else the system's, and a function that sets it. */
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

/** Uses the light scheme on paper, which has no background. */
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
