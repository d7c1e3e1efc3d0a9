import { cx } from '@emotion/css';

import { figures, useLive } from '../../client';
import { errorList } from '../../lib/errorNames';
import { number } from '../../lib/format';
import { PLAIN_LIST, stylesOf, visuallyHidden } from '../../lib/styles';
import { queued, type Kpi } from './model';

/** Beside the figures of the comparison: counts of requests and errors since the start, and the queue now. */
export function Kpis({ lane: name }: { lane: string }) {
  const styles = useStyles();
  const { lane } = useLive(name);
  const running = lane?.state.running ? lane : undefined;
  const { ok, errors = 0, errors_by_class: classes } = running?.totals ?? {};
  const cards: Kpi[] = [
    { name: figures.requests.name, meaning: 'Completed since start', text: number(ok) },
    queued(running),
    {
      name: figures.errors.name,
      meaning: 'Failed since start',
      text: number(running?.totals.errors),
      bad: errors > 0,
      note: classes && errorList(classes),
    },
  ];
  return (
    <ul className={styles.cards} aria-label="Key figures">
      {cards.map(({ name: term, meaning, text, bad, silent, note }) => (
        <li key={term} className={styles.card}>
          <div className={styles.name}>{term}</div>
          <div className={cx(styles.value, bad && styles.bad)}>
            {silent ? <span className={styles.silent}>{text}</span> : text}
            {bad && <span className={visuallyHidden}> (should be zero)</span>}
          </div>
          <div className={styles.small}>{meaning}</div>
          <div className={cx(styles.small, bad && styles.bad)}>{note}</div>
        </li>
      ))}
    </ul>
  );
}

const useStyles = stylesOf((theme) => ({
  cards: {
    display: 'grid',
    gridTemplateColumns: 'repeat(auto-fit, minmax(min(140px, 100%), 1fr))',
    gap: theme.spacing(1),
    ...PLAIN_LIST,
  },
  card: {
    minWidth: 0,
    padding: theme.spacing(1, 1.5),
    borderRadius: theme.shape.radius.default,
    background: theme.colors.background.secondary,
    fontVariantNumeric: 'tabular-nums',
  },
  name: { fontWeight: theme.typography.fontWeightMedium },
  value: {
    fontSize: 'clamp(24px, 2.4vw, 40px)',
    lineHeight: 1.2,
    fontWeight: theme.typography.fontWeightMedium,
    whiteSpace: 'nowrap',
  },
  silent: { color: theme.colors.text.secondary, fontSize: theme.typography.h4.fontSize },
  bad: { '&&': { color: theme.colors.error.text } },
  small: { color: theme.colors.text.secondary, ...theme.typography.bodySmall },
}));
