import { useMemo, useRef, useState } from 'react';
import { useQuery } from '@tanstack/react-query';

import { Alert, Button } from '@grafana/ui';

import { asProblem, readStarter, useClient, type Conversation, type Problem } from '../../../client';
import { Loading } from '../../../components/Loading';
import { stylesOf } from '../../../lib/styles';
import { useStable } from '../../../lib/useStable';
import { Bubble } from './Bubble';

/** The article at the beginning of the prompt, shown as one line until its text is requested. */
export function ArticleView({ article }: { article: Article }) {
  const styles = useStyles();
  const button = useRef<HTMLButtonElement>(null);
  const { topic, open, text, toggle, ask } = article;
  const again = () => {
    button.current?.focus(); // because the pressed button is removed
    ask();
  };
  return (
    <>
      <Bubble from="user">
        <div className={styles.head}>
          <span className={styles.topic} title={topic}>
            Article: {topic}
          </span>
          <Button ref={button} size="sm" variant="secondary" fill="text" aria-expanded={open} onClick={toggle}>
            {open ? 'Hide the article' : 'Show the article'}
          </Button>
        </div>
        {open && (
          <div className={styles.body}>
            <Body article={article} again={again} />
          </div>
        )}
      </Bubble>
      <div className={styles.remark}>
        This text comes first in the prompt, byte-identical in every conversation about it.
        {open && text !== undefined && ' Shown as in the current corpus.'}
      </div>
    </>
  );
}

function Body({ article, again }: { article: Article; again(): void }) {
  const styles = useStyles();
  const { topic, asking, text, problem } = article;
  if (problem) {
    return (
      <Alert severity="warning" title="The article could not be loaded" bottomSpacing={0}>
        <p>{problem.message}</p>
        <Button size="sm" variant="secondary" onClick={again}>
          Try again
        </Button>
      </Alert>
    );
  }
  if (asking || text === undefined) {
    return <Loading text="Loading the article…" />;
  }
  return (
    <div className={styles.text} tabIndex={0} role="group" aria-label={`Article: ${topic}, scrollable`}>
      {text.split(HEADING).map((part, k) => (k % 2 === 1 ? <b key={k}>{part}</b> : part))}
    </div>
  );
}

/** Matches a heading of Markdown. Splitting a text by it yields the headings' texts at odd indices. */
const HEADING = /^#{1,6} +(.+)$/m;

/** The article at the beginning of a conversation, and whether it is unfolded. */
export interface Article {
  topic: string;
  open: boolean;
  asking: boolean;
  /** Its whole text in Markdown, as sent. */
  text?: string;
  problem?: Problem;
  /** Folds it, or unfolds it and requests its text unless it is loaded. */
  toggle(): void;
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

const useStyles = stylesOf((theme) => ({
  head: {
    display: 'flex',
    alignItems: 'center',
    justifyContent: 'space-between',
    gap: theme.spacing(1),
    '& button': { flex: 'none' },
  },
  topic: { overflow: 'hidden', textOverflow: 'ellipsis', whiteSpace: 'nowrap' },
  body: { marginTop: theme.spacing(1) },
  text: {
    maxHeight: 'min(60vh, max(14rem, 100vh - 400px))', // less in a low transcript, so that both its ends fit
    paddingRight: theme.spacing(1),
    overflowY: 'auto',
    '&:focus-visible': { outline: `2px solid ${theme.colors.primary.border}`, outlineOffset: 2 },
    whiteSpace: 'pre-wrap',
    overflowWrap: 'anywhere',
    lineHeight: 1.5,
  },
  remark: { ...theme.typography.bodySmall, alignSelf: 'flex-end', color: theme.colors.text.secondary },
}));
