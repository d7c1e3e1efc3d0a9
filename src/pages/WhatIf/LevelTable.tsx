import type { ReactNode } from 'react';

import type { Mode } from '../../client';
import { DataTable } from '../../components/DataTable';
import { levelsName, levelText, type Level } from '../../lib/level';
import { modeName } from '../../lib/names';
import { stylesOf } from '../../lib/styles';

interface LevelTableProps<Key extends string> {
  caption: string;
  /** Each is the heading of a column for every mode. */
  columns: Array<{ key: Key; name: string }>;
  modes: Mode[];
  levels: Level[];
  cell(key: Key, mode: Mode, level: Level): ReactNode;
}

/** Figures by level and mode. */
export function LevelTable<Key extends string>({ caption, columns, modes, levels, cell }: LevelTableProps<Key>) {
  const styles = useStyles();
  return (
    <DataTable
      label={caption}
      className={styles.table}
      rows={levels}
      keyOf={(level) => level}
      columns={[
        { name: levelsName(levels), cell: (level) => levelText(level) },
        ...columns.flatMap(({ key, name }) =>
          modes.map((mode) => ({
            name: modeName(mode),
            group: { key, heading: name },
            cell: (level: Level) => cell(key, mode, level),
          }))
        ),
      ]}
    />
  );
}

const useStyles = stylesOf((theme) => ({
  table: {
    '& td, & thead tr:last-of-type th': { textAlign: 'right' },
    '& th': { fontWeight: theme.typography.fontWeightMedium },
    '& thead th': { verticalAlign: 'bottom' },
  },
}));
