import { cx } from '@emotion/css';

import { withoutBreaks } from '../../lib/format';
import { stylesOf, verdicts } from '../../lib/styles';
import type { Headline } from './headline';

interface HeadlineViewProps {
  headline: Headline;
  /** Whether it is live; an earlier one is dimmed. */
  isLive: boolean;
}

/** The comparison in one sentence, large; gray while nothing is decided. */
export function HeadlineView({ headline, isLive }: HeadlineViewProps) {
  const styles = useStyles();
  const { before, difference, after, detail, caution } = headline;
  const kind = isLive ? headline.kind : 'same';
  return (
    <section className={styles.part} aria-label="Difference">
      <p className={cx(styles.sentence, kind === 'same' && styles.same)}>
        {before} {difference && <strong className={styles[kind]}>{withoutBreaks(difference)}</strong>} {after}
      </p>
      <p className={styles.detail}>{detail && withoutBreaks(detail)}</p>
      {caution && <p className={cx(styles.detail, styles.caution)}>{caution}</p>}
    </section>
  );
}

const useStyles = stylesOf((theme) => ({
  part: {
    padding: '0.6em 1.4em',
    borderRadius: '0.5em',
    background: theme.colors.background.primary,
    textWrap: 'balance',
    '& p': { margin: 0 },
  },
  sentence: {
    fontSize: '2.9em',
    lineHeight: 1.2,
    fontWeight: theme.typography.fontWeightMedium,
    '@media (max-width: 600px)': { fontSize: '2.2em' },
  },
  detail: { fontSize: '1.6em', lineHeight: 1.3, minHeight: '1.3em', color: theme.colors.text.secondary },
  caution: { color: theme.colors.warning.text },
  ...verdicts(theme),
}));
