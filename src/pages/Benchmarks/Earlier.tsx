import { Button } from '@grafana/ui';

import type { SweepSummary } from '../../client';
import { stylesOf, visuallyHidden } from '../../lib/styles';
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
    <div className={styles.container} tabIndex={0} role="group" aria-label="All results">
      <table className={styles.table}>
        <caption className={visuallyHidden}>Trials, sweeps and capacity searches, newest first</caption>
        <thead>
          <tr>
            <th scope="col">Started</th>
            <th scope="col">What</th>
            <th scope="col">State</th>
            <th scope="col">Findings</th>
          </tr>
        </thead>
        <tbody>
          {sweeps.map(({ id, asked, request, state, words, baseline }) => (
            <tr key={id} aria-current={id === shown ? true : undefined}>
              <td className={styles.time}>{dateTime(asked)}</td>
              <th scope="row">
                <Button fill="text" size="sm" aria-pressed={id === shown} onClick={() => onShow(id)}>
                  {sweepName({ request })}
                </Button>
              </th>
              <td className={styles.time}>
                {states[state]}
                {baseline && <small>baseline “{baseline}”</small>}
              </td>
              <td className={styles.words}>{words[0]}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

const useStyles = stylesOf((theme) => ({
  empty: { margin: 0, color: theme.colors.text.secondary },
  container: { position: 'relative', overflowX: 'auto', maxHeight: 420 },
  table: {
    width: '100%',
    '& th, & td': {
      padding: theme.spacing(0.5, 0.75),
      textAlign: 'left',
      verticalAlign: 'baseline',
      borderBottom: `1px solid ${theme.colors.border.weak}`,
    },
    '& thead th': { color: theme.colors.text.secondary, fontWeight: theme.typography.fontWeightMedium },
    '& tr[aria-current]': { background: theme.colors.background.secondary },
    '& small': { display: 'block', color: theme.colors.text.secondary },
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
