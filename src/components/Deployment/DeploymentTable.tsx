import type { Baseline, Deployment } from '../../client';
import { settingsOf } from '../../lib/deployment';
import { stylesOf } from '../../lib/styles';
import { DataTable } from '../DataTable';

interface DeploymentTableProps {
  /** The current deployment; undefined while it is not known. */
  live: Deployment | undefined;
  /** The results whose deployment is beside it. */
  recorded: Baseline | undefined;
}

/** The current deployment beside the one of the recorded results: hardware, versions, settings of the engine. */
export function DeploymentTable({ live, recorded }: DeploymentTableProps) {
  const styles = useStyles();
  const now = settingsOf(live ?? {});
  const then = settingsOf(recorded?.deployment ?? {});
  const source = recorded?.notes?.split('\n').at(0);
  const value = (known: string | undefined, otherwise: string) =>
    known ?? <span className={styles.absent}>{otherwise}</span>;
  return (
    <>
      <DataTable
        label={`The live deployment next to that of ${recorded?.title ?? 'the recorded results'}`}
        className={styles.table}
        rows={now.map((setting, i) => ({ ...setting, was: then[i].value }))}
        keyOf={({ name }) => name}
        columns={[
          { name: 'Setting', cell: ({ name }) => name },
          {
            name: 'Live',
            note: 'as configured or reported by the cluster',
            cell: ({ value: is }) => value(is, 'not reported'),
          },
          {
            name: recorded?.title ?? 'Recorded',
            note: recorded ? (recorded.kind === 'measured' ? 'measured here' : 'as documented') : 'none yet',
            cell: ({ was }) => value(was, 'not recorded'),
          },
        ]}
      />
      {recorded && source && (
        <p className={styles.source}>
          {recorded.title}: {source}
        </p>
      )}
    </>
  );
}

const useStyles = stylesOf((theme) => ({
  table: {
    maxWidth: 960,
    '& th, & td': { overflowWrap: 'anywhere' },
    '& tbody th': { color: theme.colors.text.secondary },
    '& th:first-child': { minWidth: '14ch' },
    // On a phone, words are not broken where they are shorter than a third of its width.
    [theme.breakpoints.down('sm')]: {
      tableLayout: 'fixed',
      fontSize: theme.typography.bodySmall.fontSize,
      '& th, & td': { padding: theme.spacing(0.5) },
      '& th:first-child': { minWidth: 0 },
    },
  },
  source: { maxWidth: 960, margin: theme.spacing(1, 0, 0), color: theme.colors.text.secondary },
  absent: { color: theme.colors.text.secondary },
}));
