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
      <DataTable label="Settings that differ, as a table" className={styles.table}>
        <thead>
          <tr>
            <th scope="col">Setting</th>
            <th scope="col">Here</th>
            <th scope="col">Recorded</th>
          </tr>
        </thead>
        <tbody>
          {differences.map(({ field, live, baseline }) => (
            <tr key={field}>
              <th scope="row">{settingName(field)}</th>
              <td>{settingText(field, live)}</td>
              <td>{settingText(field, baseline)}</td>
            </tr>
          ))}
        </tbody>
      </DataTable>
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
