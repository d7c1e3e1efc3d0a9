import { Alert } from '@grafana/ui';

import {
  listConversations,
  readConversation,
  useClient,
  usePolled,
  type Client,
  type Conversation,
  type Worker,
} from '../../client';
import { DataTable } from '../../components/DataTable';
import { DASH, NOT_REPORTED, number, percent } from '../../lib/format';
import { LANE } from '../lane';
import { shortId } from './routing';
import { recentTurns } from './recent';

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
      {problem && (
        <Alert severity="warning" title="The latest turns could not be loaded" bottomSpacing={1}>
          {problem.message}
        </Alert>
      )}
      {turns.length === 0 ? (
        <p>No turn has ended yet. Once one has, its worker and predicted hit rate appear here.</p>
      ) : (
        <DataTable label="Latest answers" caption="What the target reported with the latest answers">
          <thead>
            <tr>
              <th scope="col">Turn</th>
              <th scope="col">Worker</th>
              <th scope="col">Prompt tokens</th>
              <th scope="col">Predicted hit</th>
              <th scope="col">Reported hit</th>
            </tr>
          </thead>
          <tbody>
            {turns.map((t) => (
              <tr key={t.id}>
                <th scope="row">
                  Conversation {shortId(t.conversation)}, turn {t.number}
                </th>
                <td>{t.worker ?? DASH}</td>
                <td>{number(t.prompt)}</td>
                <td>{percent(t.predicted)}</td>
                <td>{t.cached === undefined ? NOT_REPORTED : percent(t.cached)}</td>
              </tr>
            ))}
          </tbody>
        </DataTable>
      )}
    </>
  );
}

async function load(client: Client): Promise<Conversation[]> {
  const list = await listConversations(client, LANE, { status: 'active', limit: CONVERSATIONS });
  return Promise.all(list.conversations.map(({ id }) => readConversation(client, id)));
}
