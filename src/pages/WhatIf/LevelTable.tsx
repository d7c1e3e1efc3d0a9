import type { ReactNode } from 'react';

import type { Mode } from '../../client';
import { DataTable } from '../../components/DataTable';
import { levelsName, levelText, type Level } from '../../lib/level';
import { modeName } from '../../lib/names';
import { stylesOf } from '../../lib/styles';

interface LevelTableProps {
  caption: string;
  /** Each is the heading of a column for every mode. */
  columns: Array<{ name: string; cell(mode: Mode, level: Level): ReactNode }>;
  modes: Mode[];
  levels: Level[];
}

/** Figures by level and mode. */
export function LevelTable({ caption, columns, modes, levels }: LevelTableProps) {
  const styles = useStyles();
  return (
    <DataTable
      label={caption}
      className={styles.table}
      rows={levels}
      keyOf={(level) => level}
      columns={[
        { name: levelsName(levels), cell: (level) => levelText(level) },
        ...columns.flatMap(({ name, cell }) =>
          modes.map((mode) => ({
            name: modeName(mode),
            group: { key: name, heading: name },
            cell: (level: Level) => cell(mode, level),
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
