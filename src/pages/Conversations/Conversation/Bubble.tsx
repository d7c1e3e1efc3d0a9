import type { ReactNode } from 'react';
import { cx } from '@emotion/css';

import { stylesOf } from '../../../lib/styles';

/** The frame of a message, at its sender's edge of the transcript. */
export function Bubble({ from, children }: { from: 'user' | 'assistant'; children: ReactNode }) {
  const styles = useStyles();
  return <div className={cx(styles.bubble, styles[from])}>{children}</div>;
}

const useStyles = stylesOf((theme) => ({
  bubble: {
    maxWidth: 'min(78ch, 88%)',
    padding: theme.spacing(1, 1.5),
    borderRadius: theme.shape.radius.default,
    background: theme.colors.background.secondary,
  },
  user: {
    alignSelf: 'flex-end',
    background: theme.colors.info.transparent,
    border: `1px solid ${theme.colors.info.borderTransparent}`,
  },
  assistant: { alignSelf: 'flex-start', border: `1px solid ${theme.colors.border.weak}` },
}));
