import { useMemo, useState } from 'react';
import { useQuery } from '@tanstack/react-query';

import { asProblem, readStarter, useClient, type Conversation, type Problem } from '../../../client';
import { useStable } from '../../../lib/useStable';

/** The article that a conversation begins with, and whether it is unfolded. */
export interface Article {
  topic: string;
  open: boolean;
  asking: boolean;
  /** Its whole text, Markdown as it was sent. */
  text?: string;
  /** Why there is no text. */
  problem?: Problem;
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
