import { useEffect, useRef, useState, type KeyboardEvent, type RefObject } from 'react';

import type { Conversation } from '../../client';

/** The number of rows that each key moves. */
const steps: Record<string, number> = {
  ArrowDown: 1,
  ArrowUp: -1,
  PageDown: 10,
  PageUp: -10,
  End: Infinity,
  Home: -Infinity,
};

/** The keyboard handling of a table. */
interface Arrows {
  /** The row that Tab reaches. */
  reachable: number;
  onKeyDown(event: KeyboardEvent<HTMLElement>): void;
}

/**
 * Moves the focus from row to row, also to rows that are not rendered yet; those from first up to end are. A row's link
 * carries its id as data-conversation.
 */
export function useArrows(
  box: RefObject<HTMLElement>,
  rows: Conversation[],
  first: number,
  end: number,
  scrollTo: (row: number) => void
): Arrows {
  const [current, setCurrent] = useState<string>();
  const wanted = useRef<string>();
  const at = rows.findIndex(({ id }) => id === current);
  useEffect(() => {
    const link = wanted.current && linkOf(box.current, wanted.current);
    if (link) {
      wanted.current = undefined;
      link.focus({ preventScroll: true });
    }
  });
  const onKeyDown = (event: KeyboardEvent<HTMLElement>) => {
    const step = steps[event.key];
    const from = rows.findIndex(({ id }) => id === focused(event.target));
    if (step === undefined || from < 0) {
      return;
    }
    event.preventDefault();
    const to = Math.min(rows.length - 1, Math.max(0, from + step));
    scrollTo(to);
    wanted.current = rows[to].id;
    setCurrent(rows[to].id);
  };
  return { reachable: at >= first && at < end ? at : first, onKeyDown };
}

function focused(target: EventTarget): string | undefined {
  return target instanceof HTMLElement ? target.dataset.conversation : undefined;
}

function linkOf(box: HTMLElement | null, id: string): HTMLElement | undefined {
  return Array.from(box?.querySelectorAll<HTMLElement>('[data-conversation]') ?? []).find(
    (link) => link.dataset.conversation === id
  );
}
