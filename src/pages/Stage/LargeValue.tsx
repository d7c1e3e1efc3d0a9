import { cx } from '@emotion/css';

import { SLOValue } from '../../components/Comparison';
import { stylesOf } from '../../lib/styles';
import { isFaint, type Figure } from './figures';

interface LargeValueProps {
  figure: Figure;
  /** Whether it is live; an earlier one is dimmed, and not judged. */
  isLive: boolean;
  testId: string;
  /** The styles of its size. */
  className?: string;
}

/** A figure with its unit, the mark of its SLO, and why it is missing or not judged. */
export function LargeValue({ figure, isLive, testId, className }: LargeValueProps) {
  const styles = useStyles();
  const { text, unit, tag } = figure;
  const slo = isLive ? figure.slo : undefined;
  return (
    <div className={cx(styles.all, className)}>
      <SLOValue level={slo} className={cx((!isLive || isFaint(figure)) && styles.faint)} testId={testId}>
        {text}
        {unit && <small> {unit}</small>}
      </SLOValue>{' '}
      {tag && <span className={styles.tag}>{tag}</span>}
    </div>
  );
}

const useStyles = stylesOf((theme) => {
  const { text } = theme.colors;
  return {
    all: {
      lineHeight: 1.05,
      fontWeight: theme.typography.fontWeightBold,
      whiteSpace: 'nowrap',
      '& small': { fontSize: '0.5em' },
    },
    faint: { color: text.secondary, fontWeight: theme.typography.fontWeightRegular },
    tag: {
      marginLeft: '0.6em',
      fontSize: '0.35em',
      fontStyle: 'italic',
      fontWeight: theme.typography.fontWeightRegular,
      color: text.secondary,
    },
  };
});
