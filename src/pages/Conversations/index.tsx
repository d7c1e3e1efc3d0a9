import { useCallback, useRef } from 'react';
import { useSearchParams } from 'react-router-dom';

import { Alert } from '@grafana/ui';

import { useLiveValue, type Conversation } from '../../client';
import { Loading } from '../../components/Loading';
import { Section } from '../../components/Section';
import { useStable } from '../../lib/useStable';
import { hasTwin, LANE, TWIN } from '../lane';
import { usePagePath } from '../navigation';
import { ConversationsExport } from './ConversationsExport';
import { Filters } from './Filters';
import { List } from './List';
import { useConversations, type Filter } from './useConversations';
import { filterOf, queryOf } from './query';

/** The conversations of the load generator, newest first. */
export default function ConversationsPage() {
  const [params, setParams] = useSearchParams();
  const filter = filterOf(params);
  const twin = useLiveValue(LANE, hasTwin);
  const seen = useRef<string>();
  const conversations = useConversations(
    filter,
    useCallback(() => seen.current, [])
  );
  const { rows, loading, problem } = conversations;
  const path = usePagePath();
  const search = queryOf(filter);
  const linkTo = useCallback(
    ({ id }: Conversation) => `${path(`conversations/${encodeURIComponent(id)}`)}${search}`,
    [path, search]
  );
  const see = useStable((id: string | undefined) => {
    seen.current = id;
  });
  const change = (next: Filter) => setParams(queryOf(next), { replace: true });
  return (
    <Section
      title="All conversations"
      info={
        'Every conversation the load generator has started, newest first, with TTFT of each ' +
        'turn, the share of its prompt tokens that came from a KV cache, and the workers that ' +
        'served it. The list refreshes every three seconds. A conversation with a failed turn ' +
        'ends there, as an error.'
      }
      actions={
        <>
          <Filters filter={filter} lanes={twin ? [LANE, TWIN] : [LANE]} onChange={change} />
          <ConversationsExport filter={filter} />
        </>
      }
    >
      {problem && (
        <Alert severity="warning" title="The conversations could not be loaded" bottomSpacing={1}>
          {problem.message}
        </Alert>
      )}
      {loading && <Loading text="Loading the conversations…" />}
      {rows.length > 0 && (
        <List key={search} conversations={conversations} lane={filter.lane} linkTo={linkTo} onSee={see} />
      )}
      {rows.length === 0 && !loading && !problem && <p>{emptyText(filter)}</p>}
    </Section>
  );
}

function emptyText({ status, topic }: Filter): string {
  return status || topic
    ? 'No matching conversations. Choose another status or topic.'
    : 'No conversations yet. Start the workload; the first ones appear within a second.';
}
