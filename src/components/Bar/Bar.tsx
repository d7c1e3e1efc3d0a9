import { cx } from '@emotion/css';

import { stylesOf } from '../../lib/styles';

interface BarProps {
  /** From 0 to 1. The number is beside it. */
  share: number;
  muted?: boolean;
  strong?: boolean;
}

/** A number as a length, comparable with the bars above and below. */
export function Bar({ share, muted, strong }: BarProps) {
  const styles = useStyles();
  const width = `${Math.min(1, Math.max(0, share)) * 100}%`;
  return (
    <span className={styles.track} aria-hidden="true">
      <span className={cx(styles.bar, muted && styles.muted, strong && styles.strong)} style={{ width }} />
    </span>
  );
}

const useStyles = stylesOf((theme) => ({
  track: { display: 'block', height: 10, background: theme.colors.background.secondary, borderRadius: 2 },
  bar: { display: 'block', height: 10, background: theme.colors.primary.text, borderRadius: 2, opacity: 0.75 },
  muted: { background: theme.colors.text.secondary },
  strong: { opacity: 1 },
}));
