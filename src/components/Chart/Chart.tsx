import { lazy, memo, Suspense, useRef, useState, type MutableRefObject } from 'react';

import { Button } from '@grafana/ui';

import { COLUMN, stylesOf } from '../../lib/styles';
import type { Plot } from './draw';
import { useGroup } from './group';
import { loadDrawn } from './loadDrawn';
import { useSeen, useSize, type Size } from './useSize';
import { isSpan, readingText, summary, viewOf, type Drawing, type View } from './view';

interface ChartProps extends Drawing {
  label: string;
  /** The values in words. By default, the highest and the last ones. */
  words?: string;
  /** The height in pixels. By default, all of the available room. */
  height?: number;
}

/**
 * Lines over moments or levels. A pointer or the arrow keys move a crosshair with the values. A drag zooms, and a
 * double click resets the zoom. The font size is that of the surrounding text.
 */
export const Chart = memo(function Chart({ label, words, height, ...drawing }: ChartProps) {
  const styles = useStyles();
  const [room, size] = useSize();
  const isSeen = useSeen(room);
  const group = useGroup(drawing.x);
  const view = viewOf(drawing, stepsOf(size), group.zoom);
  const plotRef = useRef<Plot | null>(null);
  return (
    <div className={styles.chart} style={{ height: height ?? '100%' }}>
      <div className={styles.room} ref={room}>
        <div className={styles.plot} role="img" aria-label={`${label}${words ?? summary(view)}`}>
          <Suspense fallback={null}>
            {size && (
              <Drawn
                isSeen={isSeen}
                view={view}
                size={size}
                group={group.id}
                onZoom={group.setZoom}
                plotRef={plotRef}
              />
            )}
          </Suspense>
        </div>
        <Keys label={label} view={view} plotRef={plotRef} />
        {group.zoom && (
          <Button
            className={styles.reset}
            size="sm"
            variant="secondary"
            icon="search-minus"
            aria-label={`Reset the zoom of ${label}`}
            onClick={() => group.setZoom(undefined)}
          >
            Reset zoom
          </Button>
        )}
      </div>
      {view.isCut && !isSpan(view.x) && (
        <small className={styles.cut}>Values above {view.y.ticks.at(-1)?.text} are not drawn; see the table.</small>
      )}
    </div>
  );
});

const Drawn = lazy(loadDrawn);

/** How many steps an axis of values has room for. */
function stepsOf(size: Size | undefined): number {
  return size ? Math.max(2, Math.min(5, Math.floor(size.height / (3 * size.font)))) : 4;
}

/** Moves the crosshair by keys, and announces its values. */
function Keys({ label, view, plotRef }: { label: string; view: View; plotRef: MutableRefObject<Plot | null> }) {
  const styles = useStyles();
  const [chosen, choose] = useState<number>();
  const { stops } = view;
  const last = Math.max(0, stops.length - 1);
  const stop = Math.min(chosen ?? last, last);
  const move = (to: number) => {
    choose(to);
    point(plotRef.current, view.data[0][stops[to]]);
  };
  return (
    <input
      type="range"
      className={styles.keys}
      aria-label={`${label}: read its values`}
      aria-valuetext={stops.length > 0 ? readingText(view, stops[stop]) : 'no values'}
      min={0}
      max={last}
      step={1}
      value={stop}
      onFocus={() => move(stop)}
      onBlur={() => point(plotRef.current, undefined)}
      onChange={(event) => move(event.currentTarget.valueAsNumber)}
    />
  );
}

/** Moves the crosshair to a position as a pointer does; undefined removes it. */
function point(plot: Plot | null, at: number | undefined) {
  if (!plot) {
    return;
  }
  const { over } = plot;
  if (at === undefined) {
    over.dispatchEvent(new MouseEvent('mouseleave'));
    return;
  }
  const { left, top, height } = over.getBoundingClientRect();
  const place = { clientX: left + plot.valToPos(at, 'x'), clientY: top + height / 2 };
  over.dispatchEvent(new MouseEvent('mouseenter', place));
  over.dispatchEvent(new MouseEvent('mousemove', place));
}

const useStyles = stylesOf((theme) => ({
  chart: { ...COLUMN, width: '100%', minHeight: '6em' },
  // The plot fills its container, which must not grow with it.
  room: {
    position: 'relative',
    flex: '1 1 0',
    minHeight: 0,
    borderRadius: theme.shape.radius.default,
    '&:has(> input:focus-visible)': { outline: `2px solid ${theme.colors.primary.border}`, outlineOffset: 2 },
  },
  plot: {
    position: 'absolute',
    inset: 0,
    overflow: 'hidden',
    touchAction: 'pan-y',
    // Paper is narrower than the screen for which it was drawn.
    '@media print': {
      '& :is(.uplot, .u-wrap)': { width: '100% !important' },
      '& canvas': { width: '100% !important', height: 'auto !important' },
    },
  },
  // For keys and screen readers; a pointer uses the plot.
  keys: {
    position: 'absolute',
    inset: 0,
    width: '100%',
    height: '100%',
    margin: 0,
    opacity: 0,
    pointerEvents: 'none',
  },
  reset: { position: 'absolute', top: 0, right: 0 },
  cut: { color: theme.colors.text.secondary, fontSize: theme.typography.bodySmall.fontSize },
}));
