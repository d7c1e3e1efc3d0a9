import type { SweepSummary } from '../../client';
import { progressBar, stylesOf } from '../../lib/styles';
import { secondsUsed } from '../../lib/sweeps';

/**
 * The progress of a sweep in seconds of its spans, on an axis to its latest end, with the next look and the expected
 * end.
 */
export function SweepBar({ progress }: Pick<SweepSummary, 'progress'>) {
  const styles = useStyles();
  const { seconds_left: left, seconds_least: least, seconds_most: most, of, spans } = progress;
  const used = secondsUsed(progress);
  const whole = most ?? left;
  const [value, max] = whole === undefined ? [of && spans, of ?? 1] : [used, used + whole];
  const mark = (seconds: number, title: string, look = styles.mark) => (
    <span className={look} title={title} style={{ left: `${(100 * (used + seconds)) / Math.max(1, max)}%` }} />
  );
  return (
    <div className={styles.all}>
      <progress className={styles.bar} aria-label="Progress" max={Math.max(1, max)} value={value} />
      {whole !== undefined &&
        least !== undefined &&
        least < whole &&
        mark(least, left === undefined ? 'First look' : 'At the earliest')}
      {whole !== undefined && left !== undefined && left < whole && mark(left, 'Expected end', styles.expected)}
    </div>
  );
}

const useStyles = stylesOf((theme) => {
  const mark = { position: 'absolute', top: -3, bottom: -3, width: 2, background: theme.colors.text.primary } as const;
  return {
    all: { position: 'relative', width: 'min(360px, 100%)' },
    bar: { ...progressBar(theme), width: '100%' },
    mark,
    expected: { ...mark, width: 4, borderRadius: 2 },
  };
});
