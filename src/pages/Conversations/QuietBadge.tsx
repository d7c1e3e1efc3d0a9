import { css } from '@emotion/css';

import type { GrafanaTheme2 } from '@grafana/data';
import { Badge, useStyles2 } from '@grafana/ui';

interface QuietBadgeProps {
  text: string;
  title?: string;
}

/** A gray badge. The gray of Grafana's own text on it is too weak to be read in the light theme. */
export function QuietBadge(props: QuietBadgeProps) {
  const styles = useStyles2(getStyles);
  return <Badge color="darkgrey" className={styles.text} {...props} />;
}

const getStyles = (theme: GrafanaTheme2) => ({
  text: css({ color: theme.colors.text.primary }),
});
