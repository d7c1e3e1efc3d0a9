import { css, keyframes } from '@emotion/css';

import type { GrafanaTheme2 } from '@grafana/data';

/** For text that only screen readers read. */
export const visuallyHidden = css({
  position: 'absolute',
  width: 1,
  height: 1,
  margin: -1,
  overflow: 'hidden',
  clipPath: 'inset(50%)',
  whiteSpace: 'nowrap',
});

/** Names among figures: with figures of one width, Inter's hyphen is as wide as a figure, "KV - aware". */
export const PROPORTIONAL = { fontVariantNumeric: 'normal' } as const;

/** A background that means something, which browsers otherwise leave out on paper. */
export const PRINTED = { printColorAdjust: 'exact' } as const;

/** How far something is; where that is not known, the bar is striped. */
export const progressBar = ({ colors: { border, primary }, shape }: GrafanaTheme2) =>
  css({
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
 * Better and worse. Red and green are reserved for the SLO, and these are neither its colors nor a mode’s. One is
 * light and one dark, so that they differ for color-blind readers, too.
 */
export const comparisonColors = ({ isDark }: GrafanaTheme2) =>
  isDark ? { better: '#a5f0ff', worse: '#ea5cff' } : { better: '#003f70', worse: '#a81ad0' };

/** Workers, by their places; none is a mode's, the SLO's or one of better and worse. */
export const workerColors = ({ isDark }: GrafanaTheme2) =>
  isDark ? ['#3fa7a0', '#c58a9b', '#b59b6a', '#8f93c9'] : ['#2b7f7a', '#a2647a', '#8a6d33', '#6468a8'];

/** A sign after words, which are read without it. */
const sign = (text: string) => ({ '&::after': { content: `"${text}" / ""`, marginLeft: '0.3em' } });

/** How a value stands to its objective, and to another value: ▲ is better and ▼ worse, whichever way the value went. */
export const verdicts = (theme: GrafanaTheme2) => {
  const { success, warning, error, text } = theme.colors;
  const { better, worse } = comparisonColors(theme);
  return {
    met: { color: success.text },
    near: { color: warning.text },
    missed: { color: error.text },
    better: { color: better, ...sign('▲') },
    worse: { color: worse, ...sign('▼') },
    same: { color: text.secondary },
  };
};

/**
 * The room of a table that may be wider than the page: it scrolls by itself, its first column stays, a shadow marks the
 * edge with more behind it, and on paper all of it is printed.
 */
export const wideTable = ({ colors: { background, border }, spacing }: GrafanaTheme2) => {
  const cover = (side: 'left' | 'right') =>
    `linear-gradient(to ${side}, transparent, ${background.primary} 50%) ${side} / ${spacing(6)} 100% no-repeat local`;
  const shadow = (side: 'left' | 'right') =>
    `linear-gradient(to ${side}, transparent, ${border.strong}) ${side} / ${spacing(3)} 100% no-repeat scroll`;
  return css({
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
  });
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

/** How wide a table may become: beyond that, a row is hard to follow. */
export const WIDEST = '120rem';

/** Sections below each other and, where a screen is wide, beside each other. */
export const sectionGrid = (theme: GrafanaTheme2) =>
  css({
    display: 'grid',
    gridTemplateColumns: 'minmax(0, 1fr)',
    alignItems: 'start',
    gap: theme.spacing(2),
    [WIDE]: { gridTemplateColumns: 'repeat(2, minmax(0, 1fr))' },
    [WALL]: { gridTemplateColumns: 'repeat(3, minmax(0, 1fr))' },
  });

/** Screens with room for two columns of sections. */
export const WIDE = '@media (min-width: 2200px)';
/** Screens with room for three. */
export const WALL = '@media (min-width: 3200px)';

/** The look of the browser's own range input. `--share` says how far its track is filled: "40%". */
export function rangeInput(theme: GrafanaTheme2): string {
  const track = {
    height: 6,
    borderRadius: theme.shape.radius.pill,
    background: `linear-gradient(to right, ${theme.colors.primary.main} var(--share), ${theme.colors.border.strong} var(--share))`,
  };
  const thumb = {
    width: 20,
    height: 20,
    boxSizing: 'border-box' as const,
    borderRadius: theme.shape.radius.circle,
    border: `3px solid ${theme.colors.background.primary}`,
    background: theme.colors.primary.main,
    boxShadow: `0 0 0 2px ${theme.colors.primary.main}`,
  };
  return css({
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
  });
}
