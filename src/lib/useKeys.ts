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
 * Listens to keys on the whole page for as long as the component is there: not while
 * somebody types, nor while a dialog is open, nor with Ctrl, Alt or Meta. It hears a key
 * before Grafana does, whose own meaning of that key is then not in force.
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

/** Whether the key is somebody else's. */
function isTaken({ key, target }: KeyboardEvent): boolean {
  const element = target instanceof Element ? target : undefined;
  const presses = PRESSING.includes(key) && element?.closest('button, a[href], summary');
  return Boolean(presses || element?.closest(OWN_KEYS) || document.querySelector(DIALOG));
}
