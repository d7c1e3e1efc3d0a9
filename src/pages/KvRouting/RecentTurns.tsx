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
  const turns = recentTurns(value ?? [], workers, SHOWN);
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
          keyOf={({ id }) => id}
          columns={[
            { name: 'Turn', cell: (turn) => `Conversation ${shortId(turn.conversation)}, turn ${turn.number}` },
            { name: 'Worker', cell: ({ worker = DASH }) => worker },
            { name: 'Prompt tokens', cell: ({ prompt }) => number(prompt) },
            { name: 'Predicted hit', cell: ({ predicted }) => percent(predicted) },
            { name: 'Reported hit', cell: ({ cached }) => (cached === undefined ? NOT_REPORTED : percent(cached)) },
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

/** The reported routing of a turn. */
interface RoutedTurn {
  id: string;
  conversation: string;
  number: number;
  worker?: string;
  prompt?: number;
  /** Ratios of the prompt, 0 to 1: as the router predicted it, and as the engine reported it. */
  predicted?: number;
  cached?: number;
}

/** Returns the last turns of these conversations that ended well, newest first. */
export function recentTurns(conversations: Conversation[], workers: Worker[], limit: number): RoutedTurn[] {
  return conversations
    .flatMap((c) => c.turns ?? [])
    .filter((t) => t.status === 'ok')
    .sort((a, b) => Date.parse(b.ended) - Date.parse(a.ended))
    .slice(0, limit)
    .map((t) => toRouted(t, workers));
}

function toRouted(turn: Turn, workers: Worker[]): RoutedTurn {
  const { prompt_tokens, cached_tokens } = turn;
  return {
    id: turn.request_id,
    conversation: turn.conversation,
    number: turn.number,
    worker: nameOf(turn.worker, workers),
    prompt: prompt_tokens,
    predicted: turn.predicted_ratio,
    cached: prompt_tokens && cached_tokens !== undefined ? cached_tokens / prompt_tokens : undefined,
  };
}
