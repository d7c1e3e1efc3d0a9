import type { ReactNode } from 'react';
import { cx } from '@emotion/css';

import { stylesOf, verdicts, visuallyHidden } from '../../lib/styles';
import type { SLOLevel } from '../../lib/slo';

/** The mark of each level beside its color. They are characters, because icons are loaded later than values change. */
export const sloMarks: Record<SLOLevel, { sign: string; words: string }> = {
  met: { sign: '✓', words: 'meets the SLO' },
  near: { sign: '!', words: 'meets the SLO, but is near it' },
  missed: { sign: '✕', words: 'misses the SLO' },
  withheld: { sign: '?', words: 'not judged: the load generator’s own error could change whether it meets the SLO' },
};

/** The one rule of the marks; see sloLevel. */
const RULE =
  'The rule: a p95 meets its SLO up to the threshold, and is near it from 90 % of that. Where more than 5 % of the ' +
  'turns failed, it is missed.';

interface SLOValueProps {
  /** Undefined for a value that is not judged. */
  level: SLOLevel | undefined;
  /** What else is said of it on hover. */
  hover?: string;
  className?: string;
  testId?: string;
  /** The value with its unit. */
  children: ReactNode;
}

/** A value with the mark and the color of its level. On hover it says what the mark means, and by which rule. */
export function SLOValue({ level, hover, className, testId, children }: SLOValueProps) {
  const styles = useStyles();
  const mark = level && sloMarks[level];
  return (
    <span
      className={cx(level && styles[level], className)}
      title={[mark && `${mark.sign} ${mark.words}. ${RULE}`, hover].filter(Boolean).join('\n') || undefined}
      data-testid={testId}
    >
      {children}
      {mark && (
        <>
          {' '}
          <small aria-hidden="true">{mark.sign}</small>
          <span className={styles.hidden}>{mark.words}</span>
        </>
      )}
    </span>
  );
}

const useStyles = stylesOf((theme) => {
  const { met, near, missed, withheld } = verdicts(theme);
  return { hidden: visuallyHidden, met, near, missed, withheld };
});
