import type { Comparison } from '../../client';
import { number } from '../../lib/format';
import { settingName, settingText } from '../../lib/names';
import { stylesOf } from '../../lib/styles';
import { DataTable } from '../DataTable';

/** The settings in which the live run differs from the baseline: their number, and opened, their values. */
export function Differences({ comparison: { differences } }: { comparison: Comparison }) {
  const styles = useStyles();
  const { length } = differences;
  return length === 0 ? null : (
    <details className={styles.details}>
      <summary>{length === 1 ? '1 setting differs' : `${number(length)} settings differ`} from the baseline</summary>
      <DataTable
        label="Settings that differ, as a table"
        className={styles.table}
        rows={differences}
        keyOf={({ field }) => field}
        columns={[
          { name: 'Setting', cell: ({ field }) => settingName(field) },
          { name: 'Here', cell: ({ field, live }) => settingText(field, live) },
          { name: 'Recorded', cell: ({ field, baseline }) => settingText(field, baseline) },
        ]}
      />
    </details>
  );
}

const useStyles = stylesOf((theme) => ({
  details: {
    '& > summary': {
      width: 'fit-content',
      padding: theme.spacing(0.5, 0),
      color: theme.colors.warning.text,
      fontWeight: theme.typography.fontWeightMedium,
      cursor: 'pointer',
    },
    '& > summary:focus-visible': { outline: `2px solid ${theme.colors.primary.border}`, outlineOffset: 2 },
    '@media print': { '&::details-content': { contentVisibility: 'visible', display: 'block' } },
  },
  table: { maxWidth: 720, '& td': { overflowWrap: 'anywhere' } },
}));
