import { memo, useState } from 'react';
import { cx } from '@emotion/css';

import { Button } from '@grafana/ui';

import { number } from '../../../lib/format';
import { stylesOf } from '../../../lib/styles';
import { Bubble } from './Bubble';

/** The length in letters from which a message of the user is folded. */
export const LONG = 1200;

/** The length of a folded message in letters. The styles cut it to whole lines. */
const EXCERPT = 600;

interface MessageProps {
  from: 'user' | 'assistant';
  text: string;
  /** Whether more of it is still to arrive. */
  streaming?: boolean;
}

/** One message as a bubble. It is plain text: a model's output is shown, not executed. */
export const Message = memo(function Message({ from, text, streaming }: MessageProps) {
  const styles = useStyles();
  const [open, setOpen] = useState(false);
  const folds = from === 'user' && text.length > LONG;
  const folded = folds && !open;
  return (
    <Bubble from={from}>
      <div className={styles.from}>{from === 'user' ? 'User' : 'Assistant'}</div>
      <div className={cx(styles.text, folded && styles.folded)} aria-busy={streaming}>
        {folded ? text.slice(0, EXCERPT) : text}
        {streaming && <span className={styles.caret} aria-hidden="true" />}
      </div>
      {folds && (
        <Button size="sm" variant="secondary" fill="text" aria-expanded={open} onClick={() => setOpen(!open)}>
          {open ? 'Show less' : `Show all ${number(text.length)} characters`}
        </Button>
      )}
    </Bubble>
  );
});

const useStyles = stylesOf((theme) => ({
  from: { ...theme.typography.bodySmall, color: theme.colors.text.secondary },
  text: { whiteSpace: 'pre-wrap', overflowWrap: 'anywhere', lineHeight: 1.5 },
  folded: { display: '-webkit-box', WebkitBoxOrient: 'vertical', WebkitLineClamp: 4, overflow: 'hidden' },
  caret: {
    display: 'inline-block',
    width: '0.5em',
    height: '1em',
    marginLeft: 2,
    verticalAlign: 'text-bottom',
    background: theme.colors.text.secondary,
  },
}));
