import React, { memo, useId, useMemo, type PointerEvent } from 'react';
import { css, cx } from '@emotion/css';

import type { GrafanaTheme2 } from '@grafana/data';
import { useStyles2 } from '@grafana/ui';

import type { Mode, Settings } from '../../client';
import { Curve, CurveFigure, ROOM, type Scale } from '../../components/Curve';
import { number } from '../../lib/format';
import { Reading, readingText } from './Reading';
import { draw, type Series } from './series';

/** The chart and the level at which somebody looks. */
export interface Looking {
  figure: string;
  level: number;
}

interface ChartProps {
  series: Series;
  /** The levels that are asked for. */
  levels: number[];
  x: Scale;
  modes: Mode[];
  slo?: Settings['slo'];
  looking?: Looking;
  onLook(looking: Looking | undefined): void;
}

/** A figure against concurrency, to be read by pointer or by arrow keys. All charts mark the level at which one is read. */
export const Chart = memo(function Chart({ series, levels, x, modes, slo, looking, onLook }: ChartProps) {
  const styles = useStyles2(getStyles);
  const id = useId();
  const { key, name, unit } = series.figure;
  const { lines, bands, y, limit, isCut } = useMemo(() => draw(series, slo), [series, slo]);
  const level = looking?.level;
  const marks = useMemo(() => (level === undefined ? undefined : [{ at: level, text: number(level) }]), [level]);
  const isRead = looking?.figure === key;
  const look = (at: number) => onLook({ figure: key, level: levels[at] });
  const point = ({ currentTarget, clientX }: PointerEvent<HTMLElement>) => {
    const { left, width } = currentTarget.getBoundingClientRect();
    look(nearest(levels, x.min + ((clientX - left) / width) * (x.max - x.min)));
  };
  return (
    <CurveFigure
      id={id}
      caption={
        <>
          {name}, {unit} <i>simulated</i>
        </>
      }
      y={y}
      isCut={isCut}
    >
      <Curve
        label={`${name} by concurrency; use the slider to read its values`}
        x={x}
        y={y}
        lines={lines}
        bands={bands}
        limit={limit}
        marks={marks}
      />
      <div className={styles.pane} onPointerMove={point} onPointerDown={point} onPointerLeave={() => onLook(undefined)}>
        <input
          type="range"
          className={styles.keys}
          aria-label={`${name}: read it at a level`}
          aria-valuetext={readingText(series, modes, level ?? levels[0])}
          min={0}
          max={Math.max(0, levels.length - 1)}
          step={1}
          value={Math.max(0, levels.indexOf(level ?? levels[0]))}
          onFocus={() => look(Math.max(0, levels.indexOf(level ?? levels[0])))}
          onBlur={() => onLook(undefined)}
          onChange={(event) => look(event.currentTarget.valueAsNumber)}
        />
      </div>
      {isRead && level !== undefined && (
        <div
          aria-hidden="true" // the slider says it
          className={cx(styles.reading, level > (x.min + x.max) / 2 ? styles.left : styles.right)}
          style={{ ['--at' as string]: `${(100 * (level - x.min)) / (x.max - x.min)}%` }}
        >
          <Reading series={series} modes={modes} level={level} />
        </div>
      )}
    </CurveFigure>
  );
});

/** The place of the level that is nearest to a value. */
export function nearest(levels: number[], value: number): number {
  return levels.reduce((best, level, i) => (Math.abs(level - value) < Math.abs(levels[best] - value) ? i : best), 0);
}

const getStyles = (theme: GrafanaTheme2) => ({
  // Over the drawing, within the room of its words.
  pane: css({
    position: 'absolute',
    inset: theme.spacing(...ROOM),
    cursor: 'crosshair',
    touchAction: 'pan-y',
    borderRadius: theme.shape.radius.default,
    '&:focus-within:has(:focus-visible)': { outline: `2px solid ${theme.colors.primary.border}`, outlineOffset: 2 },
  }),
  // Heard and reached by keys; a pointer has all of the pane.
  keys: css({ width: '100%', height: '100%', margin: 0, opacity: 0, pointerEvents: 'none' }),
  reading: css({
    position: 'absolute',
    inset: theme.spacing(...ROOM),
    pointerEvents: 'none',
    '& > *': { position: 'absolute', top: 0 },
  }),
  left: css({ '& > *': { right: 'calc(100% - var(--at) + 10px)' } }),
  right: css({ '& > *': { left: 'calc(var(--at) + 10px)' } }),
});
