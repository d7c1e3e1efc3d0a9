import React, { type ReactNode } from 'react';
import { css } from '@emotion/css';

import type { GrafanaTheme2 } from '@grafana/data';
import { useStyles2 } from '@grafana/ui';

import { CurveSign, type CurveLook, type CurveTone } from './Curve';
import type { Scale } from './scale';

/** What one kind of line means. */
export interface LegendItem {
  key: string;
  tone?: CurveTone;
  look?: CurveLook;
  words: ReactNode;
}

interface CurvesProps {
  legend: LegendItem[];
  /** The least width of a curve, in pixels. */
  least: number;
  /** Whether a last row of few is as wide as the others. */
  stretched?: boolean;
  /** A {@link CurveFigure} for each. */
  children: ReactNode;
}

/** Curves beside each other, as many as have room, below what their lines mean. */
export function Curves({ legend, least, stretched, children }: CurvesProps) {
  const styles = useStyles2(getStyles);
  const fill = stretched ? 'auto-fit' : 'auto-fill';
  return (
    <>
      <ul className={styles.legend} aria-label="Lines">
        {legend.map(({ key, tone, look, words }) => (
          <li key={key}>
            <CurveSign tone={tone} look={look} /> {words}
          </li>
        ))}
      </ul>
      <div
        className={styles.curves}
        style={{ gridTemplateColumns: `repeat(${fill}, minmax(min(${least}px, 100%), 1fr))` }}
      >
        {children}
      </div>
    </>
  );
}

/** The room of a curve's words around it: above, right, below, left, in units of the theme's spacing. */
export const ROOM = [2.5, 6.5, 3, 6] as const;

interface CurveFigureProps {
  caption: ReactNode;
  /** The id of the caption, where it names the figure. */
  id?: string;
  y: Scale;
  /** Whether some values are above the axis. */
  isCut?: boolean;
  /** The curve, and what lies over it. */
  children: ReactNode;
}

/** A curve with its caption, which says so where some values are not drawn. */
export function CurveFigure({ caption, id, y, isCut, children }: CurveFigureProps) {
  const styles = useStyles2(getStyles);
  return (
    <figure className={styles.figure} aria-labelledby={id}>
      <figcaption id={id}>{caption}</figcaption>
      <div className={styles.plot}>{children}</div>
      {isCut && <small className={styles.cut}>Values above {y.ticks.at(-1)?.text} are not drawn; see the table.</small>}
    </figure>
  );
}

const getStyles = (theme: GrafanaTheme2) => ({
  legend: css({
    display: 'flex',
    flexWrap: 'wrap',
    gap: theme.spacing(0, 2),
    margin: theme.spacing(0, 0, 1),
    padding: 0,
    listStyle: 'none',
  }),
  curves: css({ display: 'grid', gap: theme.spacing(2) }),
  figure: css({
    margin: 0,
    minWidth: 0,
    '& figcaption': { fontWeight: theme.typography.fontWeightMedium },
    '& figcaption i': { fontWeight: theme.typography.fontWeightRegular, color: theme.colors.text.secondary },
  }),
  plot: css({
    position: 'relative',
    height: 190,
    padding: theme.spacing(...ROOM),
    fontSize: theme.typography.bodySmall.fontSize,
  }),
  cut: css({ display: 'block', color: theme.colors.text.secondary, fontSize: theme.typography.bodySmall.fontSize }),
});
