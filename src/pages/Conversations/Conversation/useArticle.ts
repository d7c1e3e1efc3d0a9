import { useMemo, useState } from 'react';

import { asProblem, readStarter, useClient, type Conversation, type Problem } from '../../../client';
import { useStable } from '../../../lib/useStable';

/** What is known of the article that a conversation begins with. */
interface Known {
  asking: boolean;
  /** Its whole text, Markdown as it was sent. */
  text?: string;
  /** Why there is no text. */
  problem?: Problem;
}

/** The article that a conversation begins with, and whether it is unfolded. */
export interface Article extends Known {
  topic: string;
  open: boolean;
  /** Unfolds it, which asks for its text unless that is known, or folds it. */
  toggle(): void;
  /** Asks for its text once more. */
  ask(): void;
}

/**
 * The article of one conversation, asked for when it is first unfolded. It is the
 * same object until something of it changes.
 */
export function useArticle({ lane, starter, topic }: Conversation): Article {
  const client = useClient();
  const [open, setOpen] = useState(false);
  const [known, setKnown] = useState<Known>({ asking: false });
  const ask = useStable(() => {
    setKnown({ asking: true });
    readStarter(client, lane, starter).then(
      ({ text }) => setKnown({ asking: false, text }),
      (error: unknown) => setKnown({ asking: false, problem: asProblem(error) })
    );
  });
  const toggle = useStable(() => {
    setOpen(!open);
    if (!open && !known.asking && known.text === undefined) {
      ask();
    }
  });
  return useMemo(() => ({ ...known, topic, open, toggle, ask }), [known, topic, open, toggle, ask]);
}
