import { Alert } from '@grafana/ui';

import type { Twin } from '../../client';
import { stylesOf } from '../../lib/styles';
import { cautionText, evidences } from './model';

/** Names other causes of the difference than the modes. It renders nothing without a caution. */
export function Caution({ twin }: { twin: Twin }) {
  const styles = useStyles();
  const title = cautionText(twin);
  return title ? (
    <Alert severity={twin.evidence === 'none' ? 'info' : 'warning'} title={title} bottomSpacing={0}>
      <div className={styles.words}>{evidences[twin.evidence]}</div>
    </Alert>
  ) : null;
}

const useStyles = stylesOf(() => ({
  words: { maxWidth: '90ch', textWrap: 'pretty' },
}));
