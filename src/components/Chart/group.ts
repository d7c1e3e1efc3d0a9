import { createContext, useContext, useId, useState } from 'react';

import type { Levels, Range, Span } from './types';
import { rangeOf } from './view';

/** The shared state of a group of charts: the crosshair, and the visible part of the axis. */
interface Group {
  id: string;
  zoom: Range | undefined;
  setZoom(zoom: Range | undefined): void;
}

export const GroupContext = createContext<Group | undefined>(undefined);

/** Creates a group. */
export function useOwnGroup(): Group {
  const id = useId();
  const [zoom, setZoom] = useState<Range>();
  return { id, zoom, setZoom };
}

/** Returns the group of a chart. A zoom is kept while a part of it lies on the axis. */
export function useGroup(x: Span | Levels): Group {
  const own = useOwnGroup();
  const { id, zoom, setZoom } = useContext(GroupContext) ?? own;
  const [from, to] = rangeOf(x);
  const isOn = zoom && zoom[0] < to && zoom[1] > from;
  return {
    id,
    zoom: isOn ? zoom : undefined,
    setZoom: (wanted) => setZoom(wanted && (wanted[0] > from || wanted[1] < to) ? wanted : undefined),
  };
}
