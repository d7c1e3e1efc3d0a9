import type { Baseline, Sustained } from '../../client';
import { objective } from '../../lib/format';
import { modeName, speculationName } from '../../lib/names';
import { stylesOf, WRAP } from '../../lib/styles';
import { sustainedLevel, sustainedNote } from '../../lib/sustained';

/** The levels that each mode of a baseline sustains under the SLOs in force, as computed by the load generator. */
export function SustainedLine({ baseline }: { baseline: Baseline }) {
  const styles = useStyles();
  const all = baseline.sustained ?? [];
  if (all.length === 0) {
    return null;
  }
  const { slo } = all[0];
  const several = new Set(all.map((one) => one.mode)).size < all.length;
  return (
    <div className={styles.sustained} role="group" aria-label="Sustained concurrency">
      <span>
        Sustained within TTFT p95 ≤ {objective(slo.ttft)} and TPOT p95 ≤ {objective(slo.tpot)}:
      </span>
      <ul>
        {all.map((one) => (
          <li key={`${one.mode} ${one.speculation}`}>
            {modeName(one.mode)}
            {several && ` (${speculationName(one.speculation).toLowerCase()})`}{' '}
            <b>{sustainedLevel(one) ?? 'not known'}</b>
            {remarks(one, baseline)}
          </li>
        ))}
      </ul>
    </div>
  );
}

function remarks(one: Sustained, baseline: Baseline): string {
  const isolated = one.isolated.length > 0 && `also passes at ${one.isolated.join(', ')}, above a failed level`;
  const all = [isolated, sustainedNote(one, baseline)].filter(Boolean);
  return all.length > 0 ? ` (${all.join('; ')})` : '';
}

const useStyles = stylesOf((theme) => ({
  sustained: {
    ...WRAP,
    gap: theme.spacing(0, 1.5),
    fontVariantNumeric: 'tabular-nums',
    '& ul': { ...WRAP, gap: theme.spacing(0, 2), listStyle: 'none', margin: 0, padding: 0 },
  },
}));
