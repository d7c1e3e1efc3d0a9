import { DataTable } from '../../components/DataTable';
import { Section } from '../../components/Section';
import { stylesOf } from '../../lib/styles';

/** Descriptions of both modes. They contain no measured number. */
const ROWS = [
  {
    what: 'Decides by',
    roundRobin: 'the next worker in order',
    kv: 'how much of the prompt a worker has cached, and how busy it is',
  },
  { what: 'Knows what is cached', roundRobin: 'no', kv: 'yes, through an index of all workers’ blocks' },
  {
    what: 'Reuses a prefix',
    roundRobin: 'by chance, or once every worker has it',
    kv: 'deliberately, wherever it saves work',
  },
  {
    what: 'First token, when prompts share a prefix',
    roundRobin: 'later as load grows: each worker recomputes what others already have',
    kv: 'sooner, since less is computed; a full batch on one worker can cancel the gain',
  },
  {
    what: 'Spreads load',
    roundRobin: 'evenly, request by request',
    kv: 'by estimated work; near saturation, bursts may pile up on one worker',
  },
  {
    what: 'Fits',
    roundRobin: 'short requests without a common prefix',
    kv: 'conversations, shared documents, long system prompts',
  },
];

/** Both modes, side by side. */
export function Modes() {
  const styles = useStyles();
  return (
    <Section
      title="Both modes side by side"
      info={
        'How the two routing modes differ. For their effect on latency see the dashboard, which ' +
        'shows measured next to recorded results.'
      }
    >
      <DataTable
        label="Both modes as a table"
        className={styles.table}
        rows={ROWS}
        keyOf={({ what }) => what}
        columns={[
          { name: '', cell: ({ what }) => what },
          { name: 'Round-robin', cell: ({ roundRobin }) => roundRobin },
          { name: 'KV-aware', cell: ({ kv }) => kv },
        ]}
      />
    </Section>
  );
}

const useStyles = stylesOf((theme) => ({
  table: {
    width: '100%',
    tableLayout: 'fixed',
    '& th, & td': {
      padding: theme.spacing(0.75, 1),
      verticalAlign: 'top',
      overflowWrap: 'break-word',
      borderBottom: `1px solid ${theme.colors.border.weak}`,
    },
    '& th': { fontWeight: theme.typography.fontWeightMedium },
    '& th:first-child, & td:first-child': { width: '22%', paddingLeft: 0 },
  },
}));
