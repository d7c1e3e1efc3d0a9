import { turnsAddress, useClient, type Conversation } from '../../client';
import { ExportButton, type ExportFile } from '../../components/Export';
import { conversationsCsv, readAll } from './exported';
import type { Filter } from './useConversations';

/** Exports the conversations of a filter, or every turn of all of them, as a file. */
export function ConversationsExport({ filter }: { filter: Filter }) {
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
