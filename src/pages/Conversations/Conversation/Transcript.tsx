import { useLayoutEffect, useRef } from 'react';

import type { Conversation } from '../../../client';
import { stylesOf } from '../../../lib/styles';
import { useRoom } from '../useRoom';
import { isNew } from './model';
import { LiveTurnView, TurnView } from './TurnView';
import { useArticle } from './ArticleView';

/** The distance from the end, in pixels, within which the transcript follows its end. */
const NEAR = 32;

interface TranscriptProps {
  conversation: Conversation;
  workerName(id: string): string;
  /** The load generator's clock. */
  now?: number;
}

/** All turns. While the last one grows, the transcript follows its end if that is in view. */
export function Transcript({ conversation, workerName, now }: TranscriptProps) {
  const styles = useStyles();
  const { turns = [], live, status } = conversation;
  const article = useArticle(conversation);
  const box = useRef<HTMLDivElement>(null);
  const maxHeight = useRoom(box);
  const atEnd = useRef(status === 'active');
  useLayoutEffect(() => {
    if (box.current && atEnd.current) {
      box.current.scrollTop = box.current.scrollHeight;
    }
  }, [conversation]);
  const follow = () => {
    if (box.current) {
      const { scrollHeight, scrollTop, clientHeight } = box.current;
      atEnd.current = scrollHeight - scrollTop - clientHeight < NEAR;
    }
  };
  useLayoutEffect(follow, [article]); // opening it moves the end out of view
  const opening = (number: number) => (number === 1 ? article : undefined);
  return (
    <div
      className={styles.box}
      style={{ maxHeight }}
      ref={box}
      onScroll={follow}
      tabIndex={0}
      role="group"
      aria-label="Transcript, scrollable"
    >
      <ol className={styles.turns}>
        {turns.map((turn) => (
          <TurnView key={turn.number} turn={turn} article={opening(turn.number)} workerName={workerName} />
        ))}
        {isNew(live, turns) && (
          <LiveTurnView
            key={live.number}
            turn={live}
            article={opening(live.number)}
            workerName={workerName}
            now={now}
          />
        )}
      </ol>
      {turns.length === 0 && !live && (
        <p>{status === 'active' ? 'Its first turn is about to start.' : 'No turn of this conversation was stored.'}</p>
      )}
    </div>
  );
}

const useStyles = stylesOf((theme) => ({
  box: {
    overflowY: 'auto',
    overflowAnchor: 'none',
    paddingRight: theme.spacing(1),
  },
  turns: { margin: 0, padding: 0, listStyle: 'none' },
}));
