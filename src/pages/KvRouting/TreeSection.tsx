import { useMemo } from 'react';
import { Link } from 'react-router-dom';

import { Button, Stack } from '@grafana/ui';

import type { Worker } from '../../client';
import { Loading, LoadProblem } from '../../components/Loading';
import { Section } from '../../components/Section';
import { stylesOf } from '../../lib/styles';
import { usePagePath } from '../navigation';
import { shortId } from './routing';
import { PrefixTree, TreeLegend } from './PrefixTree';
import { buildTree } from './tree';
import { useFollowed } from './useFollowed';

interface TreeSectionProps {
  /** Whether the load generator is reachable. */
  active: boolean;
  /** The conversation of the pinned decision. */
  pinned?: string;
  workers: Worker[];
  /** The load generator's clock, in milliseconds. */
  time: number;
}

/** The prefix tree of one conversation, growing turn by turn. */
export function TreeSection({ active, pinned, workers, time }: TreeSectionProps) {
  const styles = useStyles();
  const path = usePagePath();
  const { conversation, siblings, none, problem, next } = useFollowed(active, pinned, time);
  const tree = useMemo(() => conversation && buildTree(conversation, workers), [conversation, workers]);
  return (
    <Section
      title="The prefix tree of one conversation"
      info={
        'Each turn resends the whole conversation, so each prompt starts with the previous one: ' +
        'a worker that has it cached computes only the rest. Tokens and worker are as reported ' +
        'by the target with each answer.'
      }
      actions={
        next && (
          <Button variant="secondary" size="sm" onClick={next}>
            Another conversation
          </Button>
        )
      }
    >
      <LoadProblem what="conversation" problem={problem} />
      {conversation && tree ? (
        <Stack direction="column" gap={1}>
          <div className={styles.head}>
            <Link to={path(`conversations/${encodeURIComponent(conversation.id)}`)}>
              Conversation {shortId(conversation.id)}
            </Link>
            , {conversation.turns_done} of {conversation.turns_planned} turns done
            {pinned && ' (of the pinned decision)'}
          </div>
          <PrefixTree tree={tree} topic={conversation.topic} siblings={siblings} />
          <TreeLegend tree={tree} />
        </Stack>
      ) : none ? (
        <p>No conversation is in progress. Start the workload to see one here.</p>
      ) : (
        !problem && active && <Loading text="Looking for a conversation…" />
      )}
    </Section>
  );
}

const useStyles = stylesOf(() => ({
  head: { fontVariantNumeric: 'tabular-nums', '& a': { textDecoration: 'underline' } },
}));
