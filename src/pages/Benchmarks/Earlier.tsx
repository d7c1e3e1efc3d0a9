import { Button } from '@grafana/ui';

import type { SweepSummary } from '../../client';
import { DataTable } from '../../components/DataTable';
import { stylesOf } from '../../lib/styles';
import { stateWord, sweepName } from '../../lib/sweeps';
import { capital } from '../../lib/text';
import { dateTime } from '../../lib/time';

interface EarlierProps {
  /** Newest first. */
  sweeps: SweepSummary[];
  /** The sweep in view. */
  shown: string | undefined;
  onShow(id: string): void;
}

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
        stacks
        rows={sweeps}
        keyOf={({ id }) => id}
        isCurrent={({ id }) => id === shown}
        columns={[
          { name: 'Started', className: styles.time, isUnnamed: true, cell: ({ asked }) => dateTime(asked) },
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
            isUnnamed: true,
            cell: ({ state, baseline }) => (
              <>
                {capital(stateWord(state))}
                {baseline && <small>baseline “{baseline}”</small>}
              </>
            ),
          },
          {
            name: 'Findings',
            className: styles.words,
            isUnnamed: true,
            isWide: true,
            // The first sentence may be a doubt, such as that the cluster is simulated.
            cell: ({ words }) => words.slice(0, 2).join(' '),
          },
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
  },
  time: { whiteSpace: 'nowrap', fontVariantNumeric: 'tabular-nums' },
  words: { minWidth: '16em', textWrap: 'pretty' },
}));
