import { Fragment, type ReactNode } from 'react';

import type { Mode } from '../../client';
import { number } from '../../lib/format';
import { modeName } from '../../lib/names';
import { stylesOf, visuallyHidden, wideTable } from '../../lib/styles';

interface LevelTableProps<Key extends string> {
  caption: string;
  /** Each is the heading of a column for every mode. */
  columns: Array<{ key: Key; name: string }>;
  modes: Mode[];
  levels: number[];
  cell(key: Key, mode: Mode, level: number): ReactNode;
}

/** Figures by level and mode. */
export function LevelTable<Key extends string>({ caption, columns, modes, levels, cell }: LevelTableProps<Key>) {
  const styles = useStyles();
  const each = (of: (key: Key, mode: Mode) => ReactNode) =>
    columns.map(({ key }) => (
      <Fragment key={key}>
        {modes.map((mode) => (
          <Fragment key={mode}>{of(key, mode)}</Fragment>
        ))}
      </Fragment>
    ));
  return (
    <div className={styles.container} tabIndex={0} role="group" aria-label={caption}>
      <table className={styles.table}>
        <caption className={visuallyHidden}>{caption}</caption>
        <thead>
          <tr>
            <th scope="col" rowSpan={2}>
              Concurrency
            </th>
            {columns.map(({ key, name }) => (
              <th key={key} scope="colgroup" colSpan={modes.length}>
                {name}
              </th>
            ))}
          </tr>
          <tr>
            {each((_, mode) => (
              <th scope="col">{modeName(mode)}</th>
            ))}
          </tr>
        </thead>
        <tbody>
          {levels.map((level) => (
            <tr key={level}>
              <th scope="row">{number(level)}</th>
              {each((key, mode) => (
                <td>{cell(key, mode, level)}</td>
              ))}
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

const useStyles = stylesOf((theme) => ({
  container: wideTable(theme),
  table: {
    width: '100%',
    fontVariantNumeric: 'tabular-nums',
    '& th, & td': {
      padding: theme.spacing(0.5, 0.75),
      textAlign: 'right',
      verticalAlign: 'baseline',
      borderBottom: `1px solid ${theme.colors.border.weak}`,
    },
    '& th': { fontWeight: theme.typography.fontWeightMedium },
    '& th[rowspan], & th[scope="row"]': { textAlign: 'left' },
    '& thead th': { color: theme.colors.text.secondary, verticalAlign: 'bottom' },
    '& thead th[scope="colgroup"]': {
      textAlign: 'center',
      color: theme.colors.text.primary,
      borderLeft: `1px solid ${theme.colors.border.weak}`,
    },
  },
}));
