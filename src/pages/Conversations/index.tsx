import { useCallback, useRef } from 'react';
import { useSearchParams } from 'react-router-dom';

import { turnsAddress, useClient, useLiveValue, type Conversation } from '../../client';
import { ExportButton, type ExportFile } from '../../components/Export';
import { Loading, LoadProblem } from '../../components/Loading';
import { Section } from '../../components/Section';
import { useStable } from '../../lib/useStable';
import { hasTwin, LANE, TWIN } from '../lane';
import { usePagePath } from '../navigation';
import { filterOf, Filters, queryOf } from './Filters';
import { List } from './List';
import { conversationsCsv, readAll } from './exported';
import { useOrdered } from './order';
import { useConversations, type Filter } from './useConversations';

/** The conversations of the load generator. */
export default function ConversationsPage() {
  const [params, setParams] = useSearchParams();
  const filter = filterOf(params);
  const twin = useLiveValue(LANE, hasTwin);
  const seen = useRef<string>();
  const conversations = useConversations(
    filter,
    useCallback(() => seen.current, [])
  );
  const { loading, problem, held } = conversations;
  const rows = useOrdered(conversations.rows, filter.order, held);
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
        'Every conversation the load generator has started: first those in progress that have a turn, then the ' +
        'others, newest first, or by a column; each with TTFT of each turn, the share of its prompt tokens that came ' +
        'from a KV cache, and the workers that served it. A column sorts the conversations that are loaded. The list ' +
        'refreshes every three seconds. A conversation with a failed turn ends there, as an error.'
      }
      actions={
        <>
          <Filters filter={filter} lanes={twin ? [LANE, TWIN] : [LANE]} onChange={change} />
          <ConversationsExport filter={filter} />
        </>
      }
    >
      <LoadProblem what="conversations" problem={problem} />
      {loading && <Loading text="Loading the conversations…" />}
      {rows.length > 0 && (
        <List
          key={queryOf({ ...filter, order: undefined })}
          conversations={{ ...conversations, rows }}
          lane={filter.lane}
          order={filter.order}
          onOrder={(order) => change({ ...filter, order })}
          linkTo={linkTo}
          onSee={see}
        />
      )}
      {rows.length === 0 && !loading && !problem && <p>{emptyText(filter)}</p>}
    </Section>
  );
}

function emptyText({ from, status, topic }: Filter): string {
  return from || status || topic
    ? 'No matching conversations. Choose another status, topic or time.'
    : 'No conversations yet. Start the workload; the first ones appear within a second.';
}

/** Exports the conversations of a filter, or every turn of all of them, as a file. */
function ConversationsExport({ filter }: { filter: Filter }) {
  const client = useClient();
  const file = (label: string, format: 'csv' | 'json', written: (all: Conversation[]) => string): ExportFile => ({
    label,
    of: 'conversations',
    format,
    text: async (signal) => written(await readAll(client, filter, signal)),
  });
  return (
    <ExportButton
      label="Export the conversations"
      files={[
        file('These conversations as CSV', 'csv', conversationsCsv),
        file('These conversations as JSON', 'json', (all) => JSON.stringify(all, undefined, 2)),
      ]}
      links={{ 'Every turn as CSV': turnsAddress(client, filter.lane) }}
    />
  );
}
