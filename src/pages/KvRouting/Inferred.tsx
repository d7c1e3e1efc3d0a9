import { css } from '@emotion/css';

import type { GrafanaTheme2 } from '@grafana/data';
import { useStyles2 } from '@grafana/ui';

import type { DecisionList } from '../../client';
import { agreementWords } from '../../components/OtherRouters';

/** Explains the source of inferred decisions, and how often our choice is the router's. */
export function Inferred({ list: { message, choices } }: { list: DecisionList }) {
  const styles = useStyles2(getStyles);
  return (
    <div className={styles.words}>
      {message && <p>{`${message.charAt(0).toUpperCase()}${message.slice(1)}.`}</p>}
      <p>
        <b>Agreement:</b>{' '}
        {choices
          ? agreementWords(choices)
          : 'unknown. It is counted only under KV-aware routing, where costs choose the worker.'}
      </p>
    </div>
  );
}

const getStyles = (theme: GrafanaTheme2) => ({
  words: css({
    maxWidth: '110ch',
    marginBottom: theme.spacing(1),
    textWrap: 'pretty',
    fontVariantNumeric: 'tabular-nums',
    '& p': { margin: 0 },
    '& b': { fontWeight: theme.typography.fontWeightMedium },
  }),
});
