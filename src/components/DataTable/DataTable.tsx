import { memo, type Key, type ReactNode } from 'react';
import { cx } from '@emotion/css';

import { PROPORTIONAL, stylesOf, wideTable } from '../../lib/styles';

/** A column of a table. */
export interface Column<Row> {
  /** Its heading, and its key; '' for a column without a heading. */
  name: string;
  /** A remark in the heading. */
  note?: string;
  /** What heads it and its neighbors of the same group. */
  group?: { key: string; heading: ReactNode };
  cell(row: Row): ReactNode;
  /** The cell below all rows. */
  foot?: ReactNode;
  /** The styles of its cells and its heading. */
  className?: string;
  /** Whether its cells are the headings of the rows. By default, those of the first column are. */
  isHead?: boolean;
  /** Where rows are stacked: whether a cell has the whole width. */
  isWide?: boolean;
  /** Where rows are stacked: whether a cell is without the name of its column. */
  isUnnamed?: boolean;
}

interface DataTableProps<Row> {
  /** The accessible name of the scrollable area, and of a table without a caption. */
  label: string;
  caption?: ReactNode;
  columns: Array<Column<Row>>;
  rows: Row[];
  keyOf(row: Row): Key;
  rowClass?(row: Row): string | undefined;
  isCurrent?(row: Row): boolean;
  /** Returns what a row has below its cells. */
  below?(row: Row): ReactNode;
  /** Additional styles of this table. */
  className?: string;
  /** Whether each row becomes a card of two columns where there is no room for all columns. */
  stacks?: boolean;
}

/** A table of figures with its caption above it. A wide one scrolls by itself, by keys, too. */
export function DataTable<Row>(props: DataTableProps<Row>) {
  const { label, caption, columns, rows, keyOf: keyOfRow, rowClass, isCurrent, below, className, stacks } = props;
  const styles = useStyles();
  const feet = columns.slice(0, columns.map(({ foot }) => foot !== undefined).lastIndexOf(true) + 1).map(toFoot);
  return (
    <div className={cx(styles.wide, styles.scroll)} tabIndex={0} role="group" aria-label={label}>
      <table
        className={cx(styles.table, stacks && styles.stacks, className)}
        aria-label={caption === undefined ? label : undefined}
      >
        {caption !== undefined && <caption>{caption}</caption>}
        <thead>
          <Heads columns={columns} />
        </thead>
        <tbody>
          {rows.map((row) => (
            <Cells
              key={keyOfRow(row)}
              row={row}
              columns={columns}
              className={rowClass?.(row)}
              current={isCurrent?.(row) || undefined}
              below={below?.(row)}
            />
          ))}
        </tbody>
        {feet.length > 0 && (
          <tfoot>
            <Cells row={undefined} columns={feet} />
          </tfoot>
        )}
      </table>
    </div>
  );
}

/** The headings, below those of their groups where there are any. */
function Heads<Row>({ columns }: { columns: Array<Column<Row>> }) {
  const grouped = columns.filter(({ group }) => group !== undefined);
  const head = ({ name, note, group, className }: Column<Row>, rowSpan?: number) =>
    name === '' ? (
      <td key={name} />
    ) : (
      <th key={keyOf(group, name)} scope="col" className={className} rowSpan={rowSpan}>
        {name}
        {note && <small> {note}</small>}
      </th>
    );
  if (grouped.length === 0) {
    return <tr>{columns.map((column) => head(column))}</tr>;
  }
  const begins = ({ group }: Column<Row>, i: number) => group?.key !== columns[i - 1]?.group?.key;
  return (
    <>
      <tr>
        {columns.map((column, i) => {
          const { group } = column;
          if (!group) {
            return head(column, 2);
          }
          return begins(column, i) ? (
            <th key={group.key} scope="colgroup" colSpan={grouped.filter((one) => one.group?.key === group.key).length}>
              {group.heading}
            </th>
          ) : null;
        })}
      </tr>
      <tr>{grouped.map((column) => head(column))}</tr>
    </>
  );
}

function keyOf(group: Column<unknown>['group'], name: string): string {
  return group ? `${group.key} ${name}` : name;
}

function toFoot<Row>({ foot, ...column }: Column<Row>): Column<undefined> {
  return { ...column, cell: () => foot, isUnnamed: column.isUnnamed || foot === undefined };
}

interface CellsProps<Row> {
  row: Row;
  columns: Array<Column<Row>>;
  className?: string;
  current?: boolean;
  below?: ReactNode;
}

/** Rendered again only where its row, the columns or what is below it change. */
const Cells = memo(function Cells({ row, columns, className, current, below }: CellsProps<unknown>) {
  const head = columns.find(({ isHead }) => isHead) ?? columns[0];
  return (
    <>
      <tr className={className} aria-current={current}>
        {columns.map((column) => {
          const { name, note, group, cell, isWide, isUnnamed } = column;
          return column === head ? (
            <th key={keyOf(group, name)} scope="row" className={column.className}>
              {cell(row)}
            </th>
          ) : (
            <td
              key={keyOf(group, name)}
              className={column.className}
              data-column={isUnnamed ? undefined : [name, note].filter(Boolean).join(', ')}
              data-wide={isWide}
            >
              {cell(row)}
            </td>
          );
        })}
      </tr>
      {below && (
        <tr>
          <td colSpan={columns.length} data-wide>
            {below}
          </td>
        </tr>
      )}
    </>
  );
}) as <Row>(props: CellsProps<Row>) => ReactNode;

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
      '& th[scope="colgroup"]': {
        textAlign: 'center',
        color: text.primary,
        borderLeft: `1px solid ${border.weak}`,
      },
      '& small:where(:not([aria-hidden]))': { display: 'block', color: text.secondary },
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
