import { Button } from '@grafana/ui';

import type { SweepSummary } from '../../client';
import { DataTable } from '../../components/DataTable';
import { stylesOf } from '../../lib/styles';
import { sweepName } from '../../lib/sweeps';
import { dateTime } from '../../lib/time';

interface EarlierProps {
  /** Newest first. */
  sweeps: SweepSummary[];
  /** The sweep in view. */
  shown: string | undefined;
  onShow(id: string): void;
}

const states: Record<SweepSummary['state'], string> = {
  running: 'In progress',
  paused: 'Paused',
  done: 'Done',
  cancelled: 'Cancelled',
  failed: 'Failed',
};

/** All trials, sweeps and capacity searches, newest first. */
export function Earlier({ sweeps, shown, onShow }: EarlierProps) {
  const styles = useStyles();
  if (sweeps.length === 0) {
    return <p className={styles.empty}>No results yet. Start a trial.</p>;
  }
  return (
    <div className={styles.container}>
      <DataTable
        label="Trials, sweeps and capacity searches, newest first"
        className={styles.table}
        rows={sweeps}
        keyOf={({ id }) => id}
        isCurrent={({ id }) => id === shown}
        columns={[
          { name: 'Started', className: styles.time, cell: ({ asked }) => dateTime(asked) },
          {
            name: 'What',
            isHead: true,
            cell: ({ id, request }) => (
              <Button fill="text" size="sm" aria-pressed={id === shown} onClick={() => onShow(id)}>
                {sweepName({ request })}
              </Button>
            ),
          },
          {
            name: 'State',
            className: styles.time,
            cell: ({ state, baseline }) => (
              <>
                {states[state]}
                {baseline && <small>baseline “{baseline}”</small>}
              </>
            ),
          },
          { name: 'Findings', className: styles.words, cell: ({ words }) => words[0] },
        ]}
      />
    </div>
  );
}

const useStyles = stylesOf((theme) => ({
  empty: { margin: 0, color: theme.colors.text.secondary },
  container: { overflowY: 'auto', maxHeight: 420 },
  table: {
    '& thead th': { fontWeight: theme.typography.fontWeightMedium },
    '& tr[aria-current]': { background: theme.colors.background.secondary },
    '& th button': { height: 'auto', padding: 0, fontSize: 'inherit', textAlign: 'left', whiteSpace: 'normal' },
    // A phone has no room for four columns: the details are below the name there.
    [theme.breakpoints.down('sm')]: {
      '& thead': { position: 'absolute', clipPath: 'inset(50%)' },
      '& tbody tr': { display: 'grid', borderBottom: `1px solid ${theme.colors.border.weak}` },
      '&& tbody th, && tbody td': { padding: theme.spacing(0.25, 0.75), border: 0 },
    },
  },
  time: { whiteSpace: 'nowrap', fontVariantNumeric: 'tabular-nums' },
  words: { minWidth: '16em', textWrap: 'pretty' },
}));
