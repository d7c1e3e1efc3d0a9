import { Badge } from '@grafana/ui';

import { stylesOf } from '../../lib/styles';

interface QuietBadgeProps {
  text: string;
  title?: string;
}

/** A gray badge. The gray of Grafana's own text on it is too weak to be read in the light theme. */
export function QuietBadge(props: QuietBadgeProps) {
  const styles = useStyles();
  return <Badge color="darkgrey" className={styles.text} {...props} />;
}

const useStyles = stylesOf((theme) => ({
  text: { color: theme.colors.text.primary },
}));
