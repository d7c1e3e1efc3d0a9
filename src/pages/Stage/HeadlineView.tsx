import { css, cx } from '@emotion/css';

import type { GrafanaTheme2 } from '@grafana/data';
import { useStyles2 } from '@grafana/ui';

import { withoutBreaks } from '../../lib/format';
import { verdicts } from '../../lib/styles';
import type { Headline } from './headline';

interface HeadlineViewProps {
  headline: Headline;
  /** Whether it is live; an earlier one is dimmed. */
  isLive: boolean;
}

/** The comparison in one sentence, large; gray while nothing is decided. */
export function HeadlineView({ headline, isLive }: HeadlineViewProps) {
  const styles = useStyles2(getStyles);
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

const getStyles = (theme: GrafanaTheme2) => {
  const { better, worse, same } = verdicts(theme);
  return {
    part: css({
      padding: '0.6em 1.4em',
      borderRadius: '0.5em',
      background: theme.colors.background.primary,
      textWrap: 'balance',
      '& p': { margin: 0 },
    }),
    sentence: css({
      fontSize: '2.9em',
      lineHeight: 1.2,
      fontWeight: theme.typography.fontWeightMedium,
      '@media (max-width: 600px)': { fontSize: '2.2em' },
    }),
    detail: css({ fontSize: '1.6em', lineHeight: 1.3, minHeight: '1.3em', color: theme.colors.text.secondary }),
    caution: css({ color: theme.colors.warning.text }),
    better: css(better),
    worse: css(worse),
    same: css(same),
  };
};
