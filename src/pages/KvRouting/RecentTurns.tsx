import {
  listConversations,
  readConversation,
  useClient,
  usePolled,
  type Client,
  type Conversation,
  type Turn,
  type Worker,
} from '../../client';
import { DataTable } from '../../components/DataTable';
import { LoadProblem } from '../../components/Loading';
import { DASH, NOT_REPORTED, number, percent } from '../../lib/format';
import { nameOf } from '../../lib/workers';
import { LANE } from '../lane';
import { shortId } from './routing';

const EVERY = 5000;
/** The number of conversations from which turns are collected, and of turns shown. */
const CONVERSATIONS = 6;
const SHOWN = 8;

/** The routing that the target reports with each answer, where it does not report its decisions. */
export function RecentTurns({ active, workers }: { active: boolean; workers: Worker[] }) {
  const client = useClient();
  const { value, problem } = usePolled(active ? () => load(client) : undefined, EVERY, 'recent turns');
  const turns = recentTurns(value ?? [], SHOWN);
  return (
    <>
      <LoadProblem what="latest turns" problem={problem} />
      {turns.length === 0 ? (
        <p>No turn has ended yet. Once one has, its worker and predicted hit rate appear here.</p>
      ) : (
        <DataTable
          label="Latest answers"
          caption="What the target reported with the latest answers"
          rows={turns}
          keyOf={({ request_id }) => request_id}
          columns={[
            { name: 'Turn', cell: (turn) => `Conversation ${shortId(turn.conversation)}, turn ${turn.number}` },
            { name: 'Worker', cell: ({ worker }) => nameOf(worker, workers) ?? DASH },
            { name: 'Prompt tokens', cell: ({ prompt_tokens }) => number(prompt_tokens) },
            { name: 'Predicted hit', cell: ({ predicted_ratio }) => percent(predicted_ratio) },
            {
              name: 'Reported hit',
              cell: ({ prompt_tokens, cached_tokens }) =>
                prompt_tokens && cached_tokens !== undefined ? percent(cached_tokens / prompt_tokens) : NOT_REPORTED,
            },
          ]}
        />
      )}
    </>
  );
}

async function load(client: Client): Promise<Conversation[]> {
  const list = await listConversations(client, LANE, { status: 'active', limit: CONVERSATIONS });
  return Promise.all(list.conversations.map(({ id }) => readConversation(client, id)));
}

/** Returns the last turns of these conversations that ended well, newest first. */
export function recentTurns(conversations: Conversation[], limit: number): Turn[] {
  return conversations
    .flatMap((c) => c.turns ?? [])
    .filter((t) => t.status === 'ok')
    .sort((a, b) => Date.parse(b.ended) - Date.parse(a.ended))
    .slice(0, limit);
}
