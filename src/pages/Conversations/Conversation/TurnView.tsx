import { memo, type ReactNode } from 'react';

import { Alert, Badge } from '@grafana/ui';

import type { LiveTurn, Turn } from '../../../client';
import { Facts, type Fact } from '../../../components/Facts';
import { errorName } from '../../../lib/errorNames';
import { DASH, milliseconds, seconds } from '../../../lib/format';
import { COLUMN, LINE, stylesOf } from '../../../lib/styles';
import { QuietBadge } from '../StatusBadge';
import { ArticleView, type Article } from './ArticleView';
import { Message } from './Message';
import { figures, uncountedReason } from './model';

interface TurnViewProps {
  turn: Turn;
  /** The article before the user's message, in a first turn. */
  article?: Article;
  workerName(id: string): string;
}

/** A turn that has ended: its messages and its measurements. */
export const TurnView = memo(function TurnView({ turn, article, workerName }: TurnViewProps) {
  const { status, error_class, error_message, user_message = '', assistant_message = '' } = turn;
  const why = uncountedReason(turn);
  return (
    <Frame number={turn.number} badge={why && <QuietBadge text={`Not counted: ${why}`} />}>
      <Facts of={figures(turn, workerName)} />
      {article && <ArticleView article={article} />}
      <Message from="user" text={user_message} />
      {assistant_message !== '' && <Message from="assistant" text={assistant_message} />}
      {status === 'error' && (
        <Alert
          severity="error"
          title={`Turn ${turn.number} failed: ${error_class ? errorName(error_class) : 'unknown error'}`}
          bottomSpacing={0}
        >
          {error_message || 'No error message.'}
        </Alert>
      )}
      {status === 'cancelled' && <p>Cancelled before the answer was complete. This is not an error.</p>}
    </Frame>
  );
});

interface LiveTurnViewProps {
  turn: LiveTurn;
  article?: Article;
  workerName(id: string): string;
  /** The load generator's clock. */
  now?: number;
}

/** A turn whose answer is streaming. */
export function LiveTurnView({ turn, article, workerName, now }: LiveTurnViewProps) {
  const { number, started, ttft, worker, user_message, assistant_message } = turn;
  const age = now === undefined ? undefined : Math.max(0, (now - Date.parse(started)) / 1000);
  const waits = ttft === undefined;
  const known: Fact[] = [
    ['TTFT', milliseconds(ttft)],
    ['So far', seconds(age)],
    ['Worker', worker === undefined ? DASH : workerName(worker)],
  ];
  return (
    <Frame number={number} badge={<Badge color="blue" text={waits ? 'Waiting for the first token' : 'Answering'} />}>
      <Facts of={known} />
      {article && <ArticleView article={article} />}
      <Message from="user" text={user_message} />
      {!waits && <Message from="assistant" text={assistant_message} streaming />}
    </Frame>
  );
}

function Frame({ number, badge, children }: { number: number; badge?: ReactNode; children: ReactNode }) {
  const styles = useStyles();
  return (
    <li className={styles.turn}>
      <div className={styles.head}>
        <h3>Turn {number}</h3>
        {badge}
      </div>
      {children}
    </li>
  );
}

const useStyles = stylesOf((theme) => ({
  turn: {
    ...COLUMN,
    gap: theme.spacing(1),
    paddingBottom: theme.spacing(2),
    '& + &': { borderTop: `1px solid ${theme.colors.border.weak}`, paddingTop: theme.spacing(2) },
  },
  head: {
    ...LINE,
    gap: theme.spacing(1),
    '& h3': { ...theme.typography.h5, margin: 0 },
  },
}));
