import { useLayoutEffect } from 'react';

import { useStable } from './useStable';

/** The action of each key, by its name in a keyboard event. Letters are lower case and match either case. */
type Keys = Record<string, () => void>;

/** Elements in which a key is text, or that handle it themselves. */
const OWN_KEYS = 'input, textarea, select, [contenteditable], [role="textbox"], [role="combobox"], [role="slider"]';

/** Matches an open dialog, which receives all keys. */
const DIALOG = '[role="dialog"], [role="alertdialog"]';

/** Keys that activate the focused element. */
const PRESSING = [' ', 'Enter'];

/**
 * Handles keys on the whole page while the component is mounted, but not while an input has
 * the focus, while a dialog is open, or with Ctrl, Alt or Meta. It handles a key before
 * Grafana, whose own shortcut for that key is then disabled.
 */
export function useKeys(keys: Keys) {
  const press = useStable((event: KeyboardEvent) => {
    const act = keys[event.key.length === 1 ? event.key.toLowerCase() : event.key];
    if (!act || event.ctrlKey || event.altKey || event.metaKey || isHandledElsewhere(event)) {
      return;
    }
    event.preventDefault();
    event.stopImmediatePropagation();
    if (!event.repeat || event.key.startsWith('Arrow')) {
      act();
    }
  });
  // A layout effect: a key may be pressed as soon as the screen is painted.
  useLayoutEffect(() => {
    window.addEventListener('keydown', press, true);
    return () => window.removeEventListener('keydown', press, true);
  }, [press]);
}

/** Whether another element handles the key. */
function isHandledElsewhere({ key, target }: KeyboardEvent): boolean {
  const element = target instanceof Element ? target : undefined;
  const presses = PRESSING.includes(key) && element?.closest('button, a[href], summary');
  return Boolean(presses || element?.closest(OWN_KEYS) || document.querySelector(DIALOG));
}
