import { useMemo, useState } from 'react';
import { useQuery } from '@tanstack/react-query';

import { asProblem, readStarter, useClient, type Conversation, type Problem } from '../../../client';
import { useStable } from '../../../lib/useStable';

/** The article at the beginning of a conversation, and whether it is unfolded. */
export interface Article {
  topic: string;
  open: boolean;
  asking: boolean;
  /** Its whole text in Markdown, as sent. */
  text?: string;
  /** Why the text is missing. */
  problem?: Problem;
  /** Folds it, or unfolds it and requests its text unless it is loaded. */
  toggle(): void;
  /** Requests its text again. */
  ask(): void;
}

/**
 * Returns the article of one conversation, requested when it is first unfolded. The object's identity changes only with
 * its content.
 */
export function useArticle({ lane, starter, topic }: Conversation): Article {
  const client = useClient();
  const [open, setOpen] = useState(false);
  const { data, error, isFetching, refetch } = useQuery({
    queryKey: ['starter', lane, starter],
    queryFn: () => readStarter(client, lane, starter),
    enabled: open,
    staleTime: Infinity,
  });
  const text = data?.text;
  const toggle = useStable(() => setOpen(!open));
  const ask = useStable(() => void refetch());
  return useMemo(
    () => ({ topic, open, asking: isFetching, text, problem: error ? asProblem(error) : undefined, toggle, ask }),
    [topic, open, isFetching, text, error, toggle, ask]
  );
}
