import type { DecisionList } from '../../client';
import { agreementWords } from '../../components/OtherRouters';
import { stylesOf } from '../../lib/styles';
import { sentence } from '../../lib/text';

/** Explains the source of inferred decisions, and how often our choice is the router's. */
export function Inferred({ list: { message, choices } }: { list: DecisionList }) {
  const styles = useStyles();
  return (
    <div className={styles.words}>
      {message && <p>{sentence(message)}</p>}
      <p>
        <b>Agreement:</b>{' '}
        {choices
          ? agreementWords(choices)
          : 'unknown. It is counted only under KV-aware routing, where costs choose the worker.'}
      </p>
    </div>
  );
}

const useStyles = stylesOf((theme) => ({
  words: {
    maxWidth: '110ch',
    marginBottom: theme.spacing(1),
    textWrap: 'pretty',
    fontVariantNumeric: 'tabular-nums',
    '& p': { margin: 0 },
    '& b': { fontWeight: theme.typography.fontWeightMedium },
  },
}));
