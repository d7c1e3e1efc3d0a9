import { keyframes } from '@emotion/css';

import { COLUMN, stylesOf } from '../../lib/styles';

interface LoadingProps {
  text: string;
  /** The number of bars in place of the content. */
  bars?: number;
}

/** Bars in place of content that is still loading, below a line that names it. */
export function Loading({ text, bars = 3 }: LoadingProps) {
  const styles = useStyles();
  return (
    <div className={styles.loading}>
      <span>{text}</span>
      {Array.from({ length: bars }, (_, i) => (
        <div key={i} className={styles.bar} style={{ width: `${100 - 18 * (i % 3)}%` }} />
      ))}
    </div>
  );
}

const pulse = keyframes({ '50%': { opacity: 0.4 } });

const useStyles = stylesOf((theme) => ({
  loading: {
    ...COLUMN,
    gap: theme.spacing(1.5),
    padding: theme.spacing(1, 0),
    color: theme.colors.text.secondary,
  },
  bar: {
    maxWidth: 960,
    height: 18,
    borderRadius: theme.shape.radius.default,
    background: theme.colors.action.selected,
    [theme.transitions.handleMotion('no-preference')]: { animation: `${pulse} 1.6s ease-in-out infinite` },
  },
}));
