import { useParams, useSearchParams } from 'react-router-dom';

import { Alert } from '@grafana/ui';

import type { Conversation as ConversationData } from '../../../client';
import { ExportButton } from '../../../components/Export';
import { LoadProblem, NotLoaded } from '../../../components/Loading';
import { Section } from '../../../components/Section';
import { COLUMN, stylesOf } from '../../../lib/styles';
import { turnsCsv } from '../exported';
import { filterOf, queryOf } from '../Filters';
import { useClock } from '../useClock';
import { useWorkerNames } from '../useWorkerNames';
import { Header, NeighborLinks } from './Header';
import { bars } from './model';
import { Transcript } from './Transcript';
import { TurnBars } from './TurnBars';
import { useConversation } from './useConversation';
import { useNeighbors } from './useNeighbors';

/** One conversation, updated until it ends. */
export default function Conversation() {
  const { id = '' } = useParams();
  // The key resets scrolling and folding for each conversation.
  return <One key={id} id={id} />;
}

function One({ id }: { id: string }) {
  const styles = useStyles();
  const [params] = useSearchParams();
  const filter = filterOf(params);
  const { conversation, problem, missing } = useConversation(id);
  const neighbors = useNeighbors(conversation, filter);
  return (
    <div className={styles.page}>
      <NeighborLinks neighbors={neighbors} search={queryOf(filter)} />
      {missing && (
        <Alert severity="info" title="Conversation not found" bottomSpacing={0}>
          There is no conversation “{id}”. It may have been removed: only the newest are kept.
        </Alert>
      )}
      <LoadProblem what="conversation" problem={missing ? undefined : problem}>
        {conversation && 'The last known state is shown.'}
      </LoadProblem>
      {!conversation && !problem && <NotLoaded what="conversation" />}
      {conversation && <Body conversation={conversation} />}
    </div>
  );
}

function Body({ conversation }: { conversation: ConversationData }) {
  const styles = useStyles();
  const now = useClock();
  const workerName = useWorkerNames(conversation.lane);
  const name = `conversation-${conversation.number}`;
  return (
    <>
      <Header conversation={conversation} workerName={workerName} now={now} />
      <div className={styles.parts}>
        <Section
          title="TTFT by turn"
          info={
            'How long each turn of this conversation waited for its first token, measured by the ' +
            'load generator. Every turn resends the whole history: if the worker has it in its ' +
            'cache, only the new message must be computed.'
          }
        >
          <TurnBars bars={bars(conversation)} />
        </Section>
        <Section
          title="Transcript"
          info={
            'Each question and answer as sent and received, with the measurements of each turn. ' +
            "Token counts come from the server's usage report; ITL is marked as estimated if chunks " +
            'carried several tokens.'
          }
          actions={
            <ExportButton
              label="Export this conversation"
              files={[
                { label: 'Turns as CSV', of: name, format: 'csv', text: () => turnsCsv(conversation) },
                {
                  label: 'Everything as JSON',
                  of: name,
                  format: 'json',
                  text: () => JSON.stringify(conversation, undefined, 2),
                },
              ]}
            />
          }
        >
          <Transcript conversation={conversation} workerName={workerName} now={now} />
        </Section>
      </div>
    </>
  );
}

const useStyles = stylesOf((theme) => ({
  page: { ...COLUMN, gap: theme.spacing(2) },
  parts: {
    display: 'grid',
    gap: theme.spacing(2),
    alignItems: 'start',
    gridTemplateColumns: 'minmax(0, 1fr)',
    [theme.breakpoints.up('lg')]: { gridTemplateColumns: 'minmax(300px, 2fr) minmax(0, 5fr)' },
  },
}));
