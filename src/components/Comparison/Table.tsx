import { memo, type CSSProperties } from 'react';
import { cx } from '@emotion/css';

import { digits, withoutBreaks } from '../../lib/format';
import { PROPORTIONAL, stylesOf, verdicts, visuallyHidden } from '../../lib/styles';
import type { Cell, TableModel } from './model';
import { SLOValue } from './SLO';

/** The size of the text: normal, or to be read from a distance. */
export type TextSize = 'normal' | 'large';

interface TableProps {
  caption: string;
  corner: string;
  nameWidth: string;
  table: TableModel;
  size: TextSize;
}

/** A table of values, live beside recorded. */
export function Table({ caption, corner, nameWidth, table, size }: TableProps) {
  const styles = useStyles();
  const scale = { '--columns': table.heads.length, '--first': nameWidth } as CSSProperties;
  return (
    <div className={styles.container}>
      <table className={cx(styles.table, size === 'large' && styles.large)} style={scale}>
        <caption className={styles.hidden}>{caption}</caption>
        <thead>
          <tr>
            <th scope="col">{corner}</th>
            {table.heads.map((head) => (
              <th key={head.key} scope="col" className={head.live ? styles.liveHead : undefined}>
                {head.label}
                <small className={styles.note}>{head.note}</small>
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {table.rows.map((row) => (
            <tr key={row.name}>
              <th scope="row">{row.name}</th>
              {row.cells.map((cell, i) => (
                <ValueCell key={table.heads[i].key} cell={cell} />
              ))}
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

/** A value, rendered again only when its text changes: a table has dozens of cells, once a second. */
const ValueCell = memo(
  function ValueCell({ cell }: { cell: Cell }) {
    const styles = useStyles();
    const { value, format, interval } = cell;
    return (
      <td className={cell.live ? styles.live : styles.recorded}>
        <SLOValue
          level={cell.slo}
          className={cx(styles.value, cell.failing && styles.missed, cell.tag === 'settling' && styles.settling)}
        >
          {digits(value, format)}
          {value !== undefined && format.unit && <small> {format.unit}</small>}
        </SLOValue>{' '}
        {interval && (
          <small className={styles.interval}>
            <span className={styles.hidden}>95 % interval </span>
            {interval.map((end) => digits(end, format)).join('–')}
          </small>
        )}
        {cell.difference && (
          <small className={styles[cell.difference.kind]} title={cell.difference.interval}>
            {cell.difference.text && <span className={styles.change}>{withoutBreaks(cell.difference.text)}</span>}{' '}
            {withoutBreaks(cell.difference.verdict)}
          </small>
        )}
        {cell.tag && <small className={styles.tag}>{cell.tag}</small>}
      </td>
    );
  },
  (a, b) => JSON.stringify(a.cell) === JSON.stringify(b.cell)
);

/**
 * The size of large text: the largest at which this number of value columns (--columns) fits the container. A value
 * with its unit and mark has the width of about six letters' height.
 */
export const LARGE_TEXT = 'clamp(13px, calc(100cqi / (var(--columns) + 1.4) / 5.8), 44px)';

/** The size of remarks beside a value. */
const SMALL = 'max(0.72em, 0.72rem)';

const useStyles = stylesOf((theme) => {
  const line = { display: 'block', fontSize: SMALL, lineHeight: 1.25 };
  const { text, border, background } = theme.colors;
  const { missed, better, worse, same } = verdicts(theme);
  return {
    hidden: visuallyHidden,
    container: { containerType: 'inline-size', minWidth: 0 },
    table: {
      width: '100%',
      tableLayout: 'fixed',
      fontVariantNumeric: 'tabular-nums',
      '& th, & td': {
        padding: theme.spacing(0.5, 0.75),
        textAlign: 'right',
        verticalAlign: 'baseline',
        overflowWrap: 'break-word',
        borderBottom: `1px solid ${border.weak}`,
      },
      '& th': { fontWeight: theme.typography.fontWeightMedium },
      '& th:first-child': { width: 'var(--first)', textAlign: 'left', paddingLeft: 0, ...PROPORTIONAL },
      '& thead th': { verticalAlign: 'bottom', color: text.secondary, borderBottomColor: border.medium },
      '& small': { fontSize: SMALL },
      '@container (max-width: 520px)': {
        fontSize: '0.86rem',
        '& th, & td': { padding: theme.spacing(0.5) },
      },
    },
    large: { fontSize: `min(1em, ${LARGE_TEXT})` },
    liveHead: { '&&': { color: text.primary, background: background.secondary } },
    note: { display: 'block', minHeight: '1.25em', fontWeight: theme.typography.fontWeightRegular },
    live: {
      color: text.primary,
      background: background.secondary,
      '& > span': { fontWeight: theme.typography.fontWeightBold },
    },
    recorded: { color: text.secondary },
    value: { whiteSpace: 'nowrap' },
    settling: { '&&': { color: text.secondary, fontWeight: theme.typography.fontWeightRegular } },
    missed,
    // A phone has a table for each percentile, for lack of width.
    interval: {
      ...line,
      color: text.secondary,
      '@container (min-width: 440px) and (max-width: 640px)': { display: 'none' },
    },
    better: { ...line, ...better },
    worse: { ...line, ...worse },
    same: { ...line, ...same },
    change: { display: 'block' },
    tag: { ...line, color: text.secondary },
  };
});
