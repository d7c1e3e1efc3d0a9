import { Badge, type BadgeColor } from '@grafana/ui';

import type { ConversationStatus } from '../../client';
import { stylesOf } from '../../lib/styles';

interface Look {
  word: string;
  /** Absent for a final state without a problem. */
  color?: BadgeColor;
  meaning: string;
}

/** How each status is shown, in the order of a conversation's life. */
export const looks: Record<ConversationStatus, Look> = {
  active: { word: 'Active', color: 'blue', meaning: 'in progress' },
  completed: { word: 'Completed', meaning: 'all turns have ended' },
  retired: { word: 'Retired', color: 'purple', meaning: 'ended early because concurrency was lowered' },
  cancelled: { word: 'Cancelled', color: 'orange', meaning: 'ended by a stop or a change of mode' },
  error: { word: 'Error', color: 'red', meaning: 'ended by a failed turn' },
};

/** The status of a conversation. */
export function StatusBadge({ status }: { status: ConversationStatus }) {
  const { word, color, meaning } = looks[status];
  return color ? <Badge text={word} color={color} title={meaning} /> : <QuietBadge text={word} title={meaning} />;
}

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
