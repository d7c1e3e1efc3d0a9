import type { PropsWithChildren, ReactNode } from 'react';
import { cx } from '@emotion/css';

import { PROPORTIONAL, stylesOf, wideTable } from '../../lib/styles';

interface DataTableProps {
  /** The accessible name of the scrollable area. */
  label: string;
  /** The caption above it. */
  caption?: ReactNode;
  /** Additional styles of this table. */
  className?: string;
  /**
   * Whether each row becomes a card of two columns where there is no room for all columns; a cell with `data-column`
   * then says the name of its column, and one with `data-wide` has the whole width.
   */
  stacks?: boolean;
}

/** A table of figures with its caption above it. A wide one scrolls by itself, by keys, too. */
export function DataTable({ label, caption, className, stacks, children }: PropsWithChildren<DataTableProps>) {
  const styles = useStyles();
  return (
    <div className={cx(styles.wide, styles.scroll)} tabIndex={0} role="group" aria-label={label}>
      <table className={cx(styles.table, stacks && styles.stacks, className)}>
        {caption && <caption>{caption}</caption>}
        {children}
      </table>
    </div>
  );
}

/** The width below which rows are stacked. */
const NARROW = '@container (max-width: 560px)';

/** Wraps styles for the width at which rows are not stacked. */
export const UNSTACKED = '@container (min-width: 561px)';

const useStyles = stylesOf((theme) => {
  const {
    colors: { border, text },
    spacing,
    typography,
  } = theme;
  return {
    wide: wideTable(theme),
    scroll: { containerType: 'inline-size' },
    table: {
      width: '100%',
      fontVariantNumeric: 'tabular-nums',
      '& caption': { captionSide: 'top', padding: 0, color: text.secondary, textWrap: 'pretty' },
      '& th, & td': {
        padding: spacing(0.5, 1),
        textAlign: 'left',
        verticalAlign: 'top',
        borderBottom: `1px solid ${border.weak}`,
      },
      '& th': { fontWeight: typography.fontWeightRegular, ...PROPORTIONAL },
      '& thead th': { color: text.secondary },
      '& small': { display: 'block', color: text.secondary },
    },
    stacks: {
      [NARROW]: {
        '&, & caption, & :is(tbody, tfoot)': { display: 'block' },
        '& thead': { display: 'none' },
        '& :is(tbody, tfoot) tr': {
          display: 'grid',
          gridTemplateColumns: 'repeat(2, minmax(0, 1fr))',
          padding: spacing(0.75, 0),
          borderBottom: `1px solid ${border.weak}`,
        },
        '& :is(tbody, tfoot) :is(th, td)': { minWidth: 0, padding: spacing(0.25, 1), borderBottom: 'none' },
        '& :is(tbody, tfoot) th, & [data-wide]': { gridColumn: '1 / -1' },
        '& :is(tbody, tfoot) th': { fontWeight: typography.fontWeightMedium },
        '& [data-column]::before': {
          content: 'attr(data-column)',
          display: 'block',
          fontSize: typography.bodySmall.fontSize,
          color: text.secondary,
        },
      },
    },
  };
});
