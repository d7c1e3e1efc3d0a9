import type { ReactNode } from 'react';
import { css, cx } from '@emotion/css';

import type { GrafanaTheme2 } from '@grafana/data';
import { useStyles2 } from '@grafana/ui';

interface BubbleProps {
  from: 'user' | 'assistant';
  children: ReactNode;
}

/** The frame of a message, at its sender's edge of the transcript. */
export function Bubble({ from, children }: BubbleProps) {
  const styles = useStyles2(getStyles);
  return <div className={cx(styles.bubble, styles[from])}>{children}</div>;
}

const getStyles = (theme: GrafanaTheme2) => ({
  bubble: css({
    maxWidth: 'min(78ch, 88%)',
    padding: theme.spacing(1, 1.5),
    borderRadius: theme.shape.radius.default,
    background: theme.colors.background.secondary,
  }),
  user: css({
    alignSelf: 'flex-end',
    background: theme.colors.info.transparent,
    border: `1px solid ${theme.colors.info.borderTransparent}`,
  }),
  assistant: css({ alignSelf: 'flex-start', border: `1px solid ${theme.colors.border.weak}` }),
});
