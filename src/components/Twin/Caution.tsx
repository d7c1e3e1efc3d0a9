import type { ReactNode } from 'react';

import { Alert } from '@grafana/ui';

import type { Twin } from '../../client';
import { LINE, stylesOf } from '../../lib/styles';
import { cautionText, evidences } from './model';

interface CautionProps {
  twin: Twin;
  /** An operator's way to resolve it. */
  action?: ReactNode;
}

/** Names other causes of the difference than the modes. It renders nothing without a caution. */
export function Caution({ twin, action }: CautionProps) {
  const styles = useStyles();
  const title = cautionText(twin);
  return title ? (
    <Alert severity={twin.evidence === 'none' ? 'info' : 'warning'} title={title} bottomSpacing={0}>
      <div className={styles.words}>
        <span>{evidences[twin.evidence]}</span>
        {action}
      </div>
    </Alert>
  ) : null;
}

const useStyles = stylesOf((theme) => ({
  words: {
    ...LINE,
    gap: theme.spacing(1, 2),
    '& > span': { flex: '1 1 40ch', maxWidth: '90ch', textWrap: 'pretty' },
  },
}));
