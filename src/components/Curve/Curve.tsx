import React, { memo } from 'react';
import { css, cx } from '@emotion/css';

import type { GrafanaTheme2 } from '@grafana/data';
import { useStyles2 } from '@grafana/ui';

import type { Mode } from '../../client';
import type { Scale, Tick } from './scale';

/** A place of a line; where there is no value, the line has a gap. */
export type Point = [x: number, y: number | undefined];

/** Whose a line is. */
export type CurveTone = Mode;

/** How a line is drawn, where lines of several kinds of values stand together: drawn through, dashed, or as rings alone. */
export type CurveLook = 'solid' | 'dashed' | 'rings';

/** One line. */
export interface CurveLine {
  key: string;
  tone: CurveTone;
  points: Point[];
  /** Solid without it. */
  look?: CurveLook;
  /** With a dot at each value, where there are few; a value between two gaps always has one. */
  dots?: boolean;
}

/** What values of a line range over, from the least to the largest. */
export interface CurveBand {
  key: string;
  tone: CurveTone;
  points: Array<[x: number, low: number, high: number]>;
}

/** A moment or level at which something is to be said. */
export interface Mark extends Tick {
  tone?: CurveTone;
}

interface CurveProps {
  /** What those hear who do not see it. */
  label: string;
  x: Scale;
  y: Scale;
  lines: CurveLine[];
  /** Behind the lines. */
  bands?: CurveBand[];
  /** Vertical lines. */
  marks?: Mark[];
  /** A horizontal line that is not to be exceeded. */
  limit?: Tick;
  /** A field across all of the drawing, behind everything, from one value to another. */
  field?: [low: number, high: number];
}

/** Units of the drawing, which is stretched over the room that there is. */
const SPAN = 1000;

/** How near two words may stand, as a share of the width. */
const NEAR = 0.16;

/**
 * Lines over an axis, from 0 on. What is above the axis is not drawn. They are few and of at most 600 points, so they are
 * drawn here, in 2 kB gzipped: uPlot, below @grafana/ui's charts, is 22 kB by itself,
 * draws on a canvas that has to be told of colours and sizes, and has no marks. Words
 * are text beside the drawing, which stretches; they are as large as the text around.
 */
export const Curve = memo(function Curve({ label, x, y, lines, bands = [], marks = [], limit, field }: CurveProps) {
  const styles = useStyles2(getStyles);
  const atX = (value: number) => (SPAN * (value - x.min)) / (x.max - x.min);
  const atY = (value: number) => SPAN * (1 - (value - y.min) / (y.max - y.min));
  const isCut =
    lines.some(({ points }) => points.some(([, py]) => py !== undefined && py > y.max)) ||
    bands.some(({ points }) => points.some(([, , high]) => high > y.max));
  return (
    <div className={styles.curve} role="img" aria-label={label}>
      {y.ticks.map(({ at, text }) => (
        <span key={at} className={styles.left} style={{ top: share(atY(at)) }}>
          {text}
        </span>
      ))}
      {x.ticks.map(({ at, text }) => (
        <span key={at} className={styles.below} style={{ left: share(atX(at)) }}>
          {text}
        </span>
      ))}
      <svg
        className={cx(styles.svg, isCut && styles.cut)}
        viewBox={`0 0 ${SPAN} ${SPAN}`}
        preserveAspectRatio="none"
        aria-hidden="true"
      >
        {field && (
          <rect
            className={styles.field}
            x={0}
            width={SPAN}
            y={atY(field[1])}
            height={Math.max(0, atY(field[0]) - atY(field[1]))}
          />
        )}
        {y.ticks.map(({ at }) => (
          <line key={at} className={styles.grid} x1={0} x2={SPAN} y1={atY(at)} y2={atY(at)} />
        ))}
        {limit && <line className={styles.limit} x1={0} x2={SPAN} y1={atY(limit.at)} y2={atY(limit.at)} />}
        {marks.map(({ at, tone }) => (
          <line key={at} className={cx(styles.mark, tone && styles[tone])} x1={atX(at)} x2={atX(at)} y1={0} y2={SPAN} />
        ))}
        {bands.map(({ key, tone, points }) => (
          <path key={key} className={cx(styles.band, styles[tone])} d={outline(points, atX, atY)} />
        ))}
        {lines.map(({ key, tone, points, look = 'solid', dots }) => (
          <g key={key} className={styles[tone]}>
            {look !== 'rings' && <path className={cx(styles.line, styles[look])} d={path(points, atX, atY)} />}
            <path className={styles.dots} d={dotted(points, Boolean(dots) || look === 'rings', atX, atY)} />
            {look === 'rings' && <path className={styles.hole} d={dotted(points, true, atX, atY)} />}
          </g>
        ))}
      </svg>
      {limit && (
        <span className={styles.limitText} style={{ top: share(atY(limit.at)) }}>
          {limit.text}
        </span>
      )}
      {apart(marks, x).map(({ at, text }) => (
        <span
          key={at}
          className={cx(styles.markText, atX(at) > 0.8 * SPAN && styles.before)}
          style={{ left: share(atX(at)) }}
        >
          {text}
        </span>
      ))}
    </div>
  );
});

interface CurveSignProps {
  /** The text's own colour without it. */
  tone?: CurveTone;
  look?: CurveLook;
}

/** What a line of a mode, or of a kind, looks like, for a legend. */
export function CurveSign({ tone, look = 'solid' }: CurveSignProps) {
  const styles = useStyles2(getStyles);
  const signs = { solid: styles.sign, dashed: styles.dashedSign, rings: styles.ringSign };
  return <span className={cx(signs[look], tone && styles[tone])} aria-hidden="true" />;
}

function share(units: number): string {
  return `${(100 * units) / SPAN}%`;
}

type Place = (value: number) => number;

const round = (units: number) => Math.round(units * 10) / 10;

function path(points: Point[], atX: Place, atY: Place): string {
  let pen = 'M';
  let drawn = '';
  for (const [px, py] of points) {
    if (py === undefined) {
      pen = 'M';
      continue;
    }
    drawn += `${pen}${round(atX(px))} ${round(atY(py))}`;
    pen = 'L';
  }
  return drawn;
}

/** The area between the least and the largest values; of a single one, a line upright. */
function outline(points: CurveBand['points'], atX: Place, atY: Place): string {
  const corners = [...points.map(([px, , high]) => [px, high]), ...[...points].reverse().map(([px, low]) => [px, low])];
  return corners.map(([px, py], i) => `${i === 0 ? 'M' : 'L'}${round(atX(px))} ${round(atY(py))}`).join('');
}

/** Lines of no length, whose round ends are dots, however the drawing is stretched. */
function dotted(points: Point[], all: boolean, atX: Place, atY: Place): string {
  return points
    .filter((_, i) => all || (points[i - 1]?.[1] === undefined && points[i + 1]?.[1] === undefined))
    .map(([px, py]) => (py === undefined ? '' : `M${round(atX(px))} ${round(atY(py))}h0`))
    .join('');
}

/** Of marks that stand near each other, only the last has room for its word. */
function apart(marks: Mark[], { min, max }: Scale): Mark[] {
  return marks.filter((mark, i) => i + 1 >= marks.length || marks[i + 1].at - mark.at > NEAR * (max - min));
}

const getStyles = (theme: GrafanaTheme2) => {
  const { action, text, border, error, background } = theme.colors;
  const colour = (name: string) => css({ color: theme.visualization.getColorByName(name) });
  const dark = theme.isDark;
  const thin = { strokeWidth: 1, vectorEffect: 'non-scaling-stroke' as const };
  const sign = { display: 'inline-block', verticalAlign: 'middle' };
  const word = {
    position: 'absolute' as const,
    lineHeight: 1,
    whiteSpace: 'nowrap' as const,
    color: text.secondary,
    fontVariantNumeric: 'tabular-nums',
  };
  return {
    // The room of the words is padding, so that a percentage is one of the drawing.
    curve: css({ position: 'relative', height: '100%', minHeight: '5em', width: '100%' }),
    svg: css({ position: 'absolute', inset: 0, width: '100%', height: '100%', overflow: 'visible' }),
    field: css({ fill: action.selected }),
    grid: css({ ...thin, stroke: border.weak }),
    limit: css({ ...thin, stroke: error.text, strokeWidth: 'max(2px, 0.1em)', strokeDasharray: '8 6' }),
    mark: css({ ...thin, stroke: 'currentColor', strokeWidth: 'max(2px, 0.1em)', strokeDasharray: '4 4' }),
    line: css({
      fill: 'none',
      stroke: 'currentColor',
      strokeWidth: 'max(2px, 0.16em)',
      strokeLinejoin: 'round',
      vectorEffect: 'non-scaling-stroke',
    }),
    dots: css({
      fill: 'none',
      stroke: 'currentColor',
      strokeWidth: 'max(6px, 0.4em)',
      strokeLinecap: 'round',
      vectorEffect: 'non-scaling-stroke',
    }),
    solid: css({}),
    dashed: css({ strokeDasharray: '6 5', strokeWidth: 'max(2px, 0.12em)' }),
    hole: css({
      fill: 'none',
      stroke: background.primary,
      strokeWidth: 'max(3px, 0.2em)',
      strokeLinecap: 'round',
      vectorEffect: 'non-scaling-stroke',
    }),
    band: css({
      fill: 'currentColor',
      fillOpacity: 0.2,
      stroke: 'currentColor',
      strokeOpacity: 0.2,
      strokeWidth: 'max(4px, 0.3em)', // a band of no width is seen, too
      vectorEffect: 'non-scaling-stroke',
    }),
    // Open below and at the sides, where dots stand on the edge.
    cut: css({ clipPath: 'inset(0 -2em -2em -2em)' }),
    sign: css({ ...sign, width: '1.5em', height: 3, background: 'currentColor' }),
    dashedSign: css({ ...sign, width: '1.5em', borderTop: '2px dashed currentColor' }),
    ringSign: css({ ...sign, width: 9, height: 9, border: '2px solid currentColor', borderRadius: '50%' }),
    left: css({ ...word, right: '100%', paddingRight: '0.5em', transform: 'translateY(-50%)' }),
    below: css({ ...word, top: '100%', paddingTop: '0.5em', transform: 'translateX(-50%)' }),
    limitText: css({
      ...word,
      left: '100%',
      paddingLeft: '0.4em',
      color: error.text,
      transform: 'translateY(-50%)',
    }),
    markText: css({ ...word, top: 0, padding: '0 0.4em', transform: 'translateY(-110%)' }),
    before: css({ '&&': { transform: 'translate(-100%, -110%)' } }),
    // Told apart also by those who see no colours: one is light, one dark, against the background.
    kv: colour(dark ? 'light-blue' : 'dark-blue'),
    round_robin: colour(dark ? 'orange' : 'dark-orange'),
    least_loaded: colour(dark ? 'purple' : 'dark-purple'),
    unknown: colour(dark ? 'light-green' : 'dark-green'),
  };
};
