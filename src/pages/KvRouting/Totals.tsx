import { Bar } from '../../components/Bar';
import { number } from '../../lib/format';
import { modeName } from '../../lib/names';
import { stylesOf } from '../../lib/styles';
import { ofOneMode, tally, type Assignments, type Decision } from './routing';

/** The tokens that the listed decisions left to be computed, beside those of the other mode. */
export function Totals({ decisions, dealt }: { decisions: Decision[]; dealt: Assignments }) {
  const styles = useStyles();
  const listed = ofOneMode(decisions);
  const sum = tally(listed, dealt);
  const { mode } = decisions[0];
  const kv = mode === 'kv';
  const prompt = number(sum.prompt);
  const most = Math.max(1, sum.chosen, sum.instead);
  return (
    <div className={styles.totals}>
      <p>
        Over the last {sum.decisions} decisions with {prompt} prompt tokens, {modeName(mode)} routing left{' '}
        <b>{number(sum.chosen)}</b> to be computed; {kv ? 'round-robin' : 'the lowest cost'} would have left about{' '}
        <b>{number(sum.instead)}</b> (estimated).
      </p>
      <dl>
        <dt>{modeName(mode)}</dt>
        <dd>
          <Bar share={sum.chosen / most} strong />
        </dd>
        <dt>{kv ? 'Round-robin' : 'Lowest cost'} (estimated)</dt>
        <dd>
          <Bar share={sum.instead / most} muted />
        </dd>
      </dl>
      <p className={styles.note}>
        Estimated: {kv ? 'the same requests assigned in order' : 'the same requests, each to the lowest cost'}, using
        the caches as they were. A cluster that always routed this way would have filled its caches differently and{' '}
        {kv
          ? 'would soon have shared opening texts on every worker, so it would compute less than this'
          : 'had different costs'}
        . To measure it, switch the mode.
      </p>
    </div>
  );
}

const useStyles = stylesOf((theme) => ({
  totals: {
    margin: theme.spacing(1, 0),
    fontVariantNumeric: 'tabular-nums',
    textWrap: 'pretty',
    '& p': { margin: 0 },
    '& b': { fontWeight: theme.typography.fontWeightBold },
    '& dl': {
      display: 'grid',
      gridTemplateColumns: 'max-content 1fr',
      alignItems: 'center',
      gap: theme.spacing(0.5, 1),
      margin: theme.spacing(1, 0),
    },
    '& dt': { fontWeight: theme.typography.fontWeightRegular },
    '& dd': { margin: 0 },
  },
  note: { color: theme.colors.text.secondary, fontSize: theme.typography.bodySmall.fontSize },
}));
