import { createContext, useContext, useId, useState } from 'react';

import type { Levels, Range, Span } from './types';
import { rangeOf } from './view';

/** What charts beside each other share: the crosshair, and the part of the axis that is shown. */
interface Group {
  id: string;
  zoom: Range | undefined;
  setZoom(zoom: Range | undefined): void;
}

export const GroupContext = createContext<Group | undefined>(undefined);

/** A group of its own. */
export function useOwnGroup(): Group {
  const id = useId();
  const [zoom, setZoom] = useState<Range>();
  return { id, zoom, setZoom };
}

/** The group that a chart is in. A zoom holds as long as some of it lies on the axis. */
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
