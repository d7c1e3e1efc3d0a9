import { memo, useCallback, useEffect, useMemo, type MutableRefObject } from 'react';

import { TooltipPlugin2, UPlotChart, useTheme2 } from '@grafana/ui';

import { useStable } from '../../lib/useStable';
import type { Plot } from './draw';
import { configOf, shapeOf, type Shape } from './options';
import { Readings } from './Readings';
import type { Range } from './types';
import type { Size } from './useSize';
import type { View } from './view';

interface DrawnProps {
  isSeen: boolean;
  view: View;
  size: Size;
  group: string;
  onZoom(range: Range): void;
  plotRef: MutableRefObject<Plot | null>;
}

/**
 * The plot. It is built anew where its lines, its colors or its letters change, and otherwise fed with data, while it
 * is on the screen.
 */
export default memo(function Drawn({ view, size: { width, height, font }, group, onZoom, plotRef }: DrawnProps) {
  const theme = useTheme2();
  const current = useStable(() => view);
  const shape = JSON.stringify(shapeOf(view));
  const config = useMemo(
    () => configOf({ shape: JSON.parse(shape) as Shape, view: current, theme, font, group }),
    [shape, current, theme, font, group]
  );
  const setPlot = useCallback(
    (built: Plot) => {
      plotRef.current = built;
    },
    [plotRef]
  );
  // With a new size, Grafana's component takes neither a new configuration nor new data.
  const feed = useStable(() => plotRef.current?.setData(view.data));
  useEffect(feed, [width, height, feed]);
  return (
    <UPlotChart key={config.uid} data={view.data} width={width} height={height} config={config} plotRef={setPlot}>
      <TooltipPlugin2
        config={config}
        hoverMode={1} // the values of all lines at the pointer's place
        queryZoom={({ from, to }) => onZoom([from, to])}
        render={({ cursor: { idx } }) =>
          idx === null || idx === undefined ? null : <Readings view={view} index={idx} />
        }
      />
    </UPlotChart>
  );
}, isUnseen);

function isUnseen(_: DrawnProps, { isSeen }: DrawnProps): boolean {
  return !isSeen;
}
