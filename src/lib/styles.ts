import { css, keyframes } from '@emotion/css';
import type { CSSInterpolation, CSSObject } from '@emotion/css/create-instance';

import type { GrafanaTheme2 } from '@grafana/data';
import { useStyles2 } from '@grafana/ui';

/** Returns a hook for the class names of a theme's styles. A string is the name of a class that exists already. */
export function stylesOf<Name extends string>(styles: (theme: GrafanaTheme2) => Record<Name, CSSInterpolation>) {
  const getStyles = (theme: GrafanaTheme2) => {
    const classes = Object.entries<CSSInterpolation>(styles(theme)).map(([name, style]) => [
      name,
      typeof style === 'string' ? style : css(style),
    ]);
    return Object.fromEntries(classes) as Record<Name, string>;
  };
  return () => useStyles2(getStyles);
}

/** A column of flexible boxes. */
export const COLUMN: CSSObject = { display: 'flex', flexDirection: 'column' };

/** Flexible boxes in as many lines as needed. */
export const WRAP: CSSObject = { display: 'flex', flexWrap: 'wrap' };

/** The same, centered in their lines. */
export const LINE: CSSObject = { ...WRAP, alignItems: 'center' };

/** A list without marks and indentation. */
export const PLAIN_LIST: CSSObject = { margin: 0, padding: 0, listStyle: 'none' };

/** A group of fields without a frame. */
export const FIELDSET: CSSObject = { minWidth: 0, margin: 0, padding: 0, border: 0 };

/** Text for screen readers only. */
export const visuallyHidden = css({
  position: 'absolute',
  width: 1,
  height: 1,
  margin: -1,
  overflow: 'hidden',
  clipPath: 'inset(50%)',
  whiteSpace: 'nowrap',
});

/** Names among figures: with tabular figures, Inter's hyphen is as wide as a figure, "KV - aware". */
export const PROPORTIONAL = { fontVariantNumeric: 'normal' } as const;

/** A background with a meaning, which browsers otherwise omit on paper. */
export const PRINTED = { printColorAdjust: 'exact' } as const;

/** A progress bar. It is striped where the progress is not known. */
export const progressBar = ({ colors: { border, primary }, shape }: GrafanaTheme2): CSSObject => ({
  appearance: 'none',
  display: 'block',
  height: 8,
  border: 0,
  borderRadius: shape.radius.pill,
  overflow: 'hidden',
  background: border.medium,
  '&::-webkit-progress-bar': { background: border.medium },
  '&::-webkit-progress-value': { background: primary.main },
  '&::-moz-progress-bar': { background: primary.main },
  '&:indeterminate': {
    '&, &::-webkit-progress-bar, &::-moz-progress-bar': {
      background: `repeating-linear-gradient(-45deg, ${primary.main} 0 8px, ${border.medium} 8px 16px)`,
    },
  },
});

/**
 * The colors of better and worse. Red and green are reserved for the SLO, and these differ from its colors and from the
 * modes'. One is light and one dark, so that color-blind readers can distinguish them.
 */
export const comparisonColors = ({ isDark }: GrafanaTheme2) =>
  isDark ? { better: '#a5f0ff', worse: '#ea5cff' } : { better: '#003f70', worse: '#a81ad0' };

/** The colors of workers, by position. None is used for a mode, the SLO, or better and worse. */
export const workerColors = ({ isDark }: GrafanaTheme2) =>
  isDark ? ['#3fa7a0', '#c58a9b', '#b59b6a', '#8f93c9'] : ['#2b7f7a', '#a2647a', '#8a6d33', '#6468a8'];

/** A mark after text, which screen readers ignore. */
const sign = (text: string) => ({ '&::after': { content: `"${text}" / ""`, marginLeft: '0.3em' } });

/**
 * The marks of a value against its objective and against another value: ▲ is better and ▼ worse, whichever way the
 * value changed.
 */
export const verdicts = (theme: GrafanaTheme2) => {
  const { success, warning, error, text } = theme.colors;
  const { better, worse } = comparisonColors(theme);
  return {
    met: { color: success.text },
    near: { color: warning.text },
    missed: { color: error.text },
    withheld: { color: text.secondary },
    better: { color: better, ...sign('▲') },
    worse: { color: worse, ...sign('▼') },
    same: { color: text.secondary },
  };
};

/**
 * The container of a table that may be wider than the page. It scrolls by itself, its first column stays, a shadow
 * marks the edge with hidden columns, and on paper all of it is printed.
 */
export const wideTable = ({ colors: { background, border }, spacing }: GrafanaTheme2): CSSObject => {
  const cover = (side: 'left' | 'right') =>
    `linear-gradient(to ${side}, transparent, ${background.primary} 50%) ${side} / ${spacing(6)} 100% no-repeat local`;
  const shadow = (side: 'left' | 'right') =>
    `linear-gradient(to ${side}, transparent, ${border.strong}) ${side} / ${spacing(3)} 100% no-repeat scroll`;
  return {
    position: 'relative',
    overflowX: 'auto',
    minWidth: 0,
    maxWidth: WIDEST,
    background: [cover('left'), cover('right'), shadow('left'), shadow('right')].join(', '),
    '& :is(tbody, tfoot) > tr > :first-child, & thead > tr:first-of-type > :first-child': {
      position: 'sticky',
      left: 0,
      zIndex: 1,
      background: background.primary,
    },
    '@media print': {
      overflow: 'visible',
      maxWidth: 'none',
      background: 'none',
      fontSize: 8,
      '& :is(table, th, td, small, span)': { fontSize: 'inherit !important' },
      '& th, & td': { padding: '1px 3px', whiteSpace: 'normal' },
    },
  };
};

const more = keyframes({
  '0%, 99%': { maskImage: 'linear-gradient(to left, transparent, black 3rem)' },
  '100%': { maskImage: 'none' },
});

/** The room of a drawing that may be wider than the page: its edge fades while there is more behind it. */
export const wideDrawing = css({
  overflowX: 'auto',
  animation: `${more} linear both`,
  animationTimeline: 'scroll(self inline)',
  '@media print': { animation: 'none' },
});

/** A row that stands out, with its first column, which a wide table keeps in view. */
export const markedRow = ({ colors: { action, background } }: GrafanaTheme2) => ({
  background: action.selected,
  '&& > :first-child': {
    background: `linear-gradient(${action.selected}, ${action.selected}), ${background.primary}`,
  },
});

/** The greatest width of a table. In a wider one, rows are hard to follow. */
const WIDEST = '120rem';

/** Sections below each other and, on wide screens, beside each other. */
export const sectionGrid = (theme: GrafanaTheme2): CSSObject => ({
  display: 'grid',
  gridTemplateColumns: 'minmax(0, 1fr)',
  alignItems: 'start',
  gap: theme.spacing(2),
  [WIDE]: { gridTemplateColumns: 'repeat(2, minmax(0, 1fr))' },
  [WALL]: { gridTemplateColumns: 'repeat(3, minmax(0, 1fr))' },
});

/** Phones. */
export const NARROW = '@media (max-width: 600px)';
/** Pictures in a picture, and phones that lie on their side. */
export const LOW = '@media (max-height: 500px)';
/** Screens with room for two columns of sections. */
export const WIDE = '@media (min-width: 2200px)';
/** Screens with room for three. */
export const WALL = '@media (min-width: 3200px)';

/** The styles of the native range input. `--share` is the filled part of its track: "40%". */
export function rangeInput(theme: GrafanaTheme2): CSSObject {
  const track = {
    height: 6,
    borderRadius: theme.shape.radius.pill,
    background:
      `linear-gradient(to right, ${theme.colors.primary.main} var(--share), ` +
      `${theme.colors.border.strong} var(--share))`,
  };
  const thumb: CSSObject = {
    width: 20,
    height: 20,
    boxSizing: 'border-box',
    borderRadius: theme.shape.radius.circle,
    border: `3px solid ${theme.colors.background.primary}`,
    background: theme.colors.primary.main,
    boxShadow: `0 0 0 2px ${theme.colors.primary.main}`,
  };
  return {
    appearance: 'none',
    display: 'block',
    width: '100%',
    height: theme.spacing(4),
    margin: 0,
    background: 'transparent',
    cursor: 'pointer',
    '&:disabled': { cursor: 'not-allowed', opacity: 0.5 },
    '&::-webkit-slider-runnable-track': track,
    '&::-moz-range-track': track,
    '&::-webkit-slider-thumb': { appearance: 'none', marginTop: -7, ...thumb },
    '&::-moz-range-thumb': thumb,
    '&:focus': { outline: 'none' },
    '&:focus-visible': {
      outline: `2px solid ${theme.colors.primary.text}`,
      outlineOffset: 2,
      borderRadius: theme.shape.radius.default,
    },
  };
}
