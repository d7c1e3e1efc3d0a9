import { useLayoutEffect } from 'react';

import { useStable } from './useStable';

/** What each key does, by its name in a keyboard event; letters are lower case, whatever is pressed. */
type Keys = Record<string, () => void>;

/** Where a key is text, or the element's own. */
const OWN_KEYS = 'input, textarea, select, [contenteditable], [role="textbox"], [role="combobox"], [role="slider"]';

/** What an open dialog is; while there is one, all keys are its own. */
const DIALOG = '[role="dialog"], [role="alertdialog"]';

/** Keys that press what has the focus. */
const PRESSING = [' ', 'Enter'];

/**
 * Handles keys on the whole page while the component is mounted, but not while an input has
 * the focus, while a dialog is open, or with Ctrl, Alt or Meta. It handles a key before
 * Grafana, whose own shortcut for that key is then disabled.
 */
export function useKeys(keys: Keys) {
  const press = useStable((event: KeyboardEvent) => {
    const act = keys[event.key.length === 1 ? event.key.toLowerCase() : event.key];
    if (!act || event.ctrlKey || event.altKey || event.metaKey || isTaken(event)) {
      return;
    }
    event.preventDefault();
    event.stopImmediatePropagation();
    if (!event.repeat || event.key.startsWith('Arrow')) {
      act();
    }
  });
  // Before it is painted: who sees the screen may press its keys.
  useLayoutEffect(() => {
    window.addEventListener('keydown', press, true);
    return () => window.removeEventListener('keydown', press, true);
  }, [press]);
}

/** Whether another element handles the key. */
function isTaken({ key, target }: KeyboardEvent): boolean {
  const element = target instanceof Element ? target : undefined;
  const presses = PRESSING.includes(key) && element?.closest('button, a[href], summary');
  return Boolean(presses || element?.closest(OWN_KEYS) || document.querySelector(DIALOG));
}
