import { listBaselines, useClient, usePolled, type LaneSnapshot } from '../../client';
import { DataTable } from '../../components/DataTable';
import { Section } from '../../components/Section';
import { recordedTable } from '../../lib/recorded';
import { stylesOf } from '../../lib/styles';
import { recordedFigures } from '../Guide/recorded';
import rows from './modes.json';

/** The interval between requests for the recorded table, in milliseconds. */
const EVERY = 30_000;

/** Both modes, side by side: descriptions without a number, and the recorded hit rates. */
export function Modes({ lane }: { lane: LaneSnapshot | undefined }) {
  const styles = useStyles();
  const client = useClient();
  const { value: baselines } = usePolled(lane && (() => listBaselines(client)), EVERY, 'baselines');
  const table = recordedTable(baselines, lane);
  const recorded = recordedFigures(table);
  const hit = {
    what: `Prompt tokens from a cache, recorded at ${recorded['doc.levels'].value} conversations`,
    roundRobin: recorded['doc.rr.hit'].value,
    kv: recorded['doc.kv.hit'].value,
  };
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
        rows={table ? [...rows, hit] : rows}
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
