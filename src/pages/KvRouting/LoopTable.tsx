import { cx } from '@emotion/css';

import { Bar } from '../../components/Bar';
import { DataTable } from '../../components/DataTable';
import { stylesOf } from '../../lib/styles';
import { EXAMPLE, workOut, type ExampleRow } from './example';

/** The example's workers, with the figures known at each step. */
export function LoopTable({ step }: { step: number }) {
  const styles = useStyles();
  const isChosen = ({ chosen }: ExampleRow) => step === 3 && chosen;
  return (
    <DataTable
      label="The example as a table"
      caption={`Example: ${EXAMPLE.blocks} blocks, overlap weight ${EXAMPLE.weight}`}
      className={styles.table}
      rows={workOut()}
      keyOf={({ name }) => name}
      rowClass={(row) => cx(isChosen(row) && styles.chosen)}
      columns={[
        {
          name: 'Worker',
          cell: (row) => (
            <>
              {row.name} {isChosen(row) && <b>chosen</b>}
            </>
          ),
        },
        {
          name: 'Cached',
          cell: ({ cached }) =>
            step === 0 ? (
              `publishes ${cached} stored`
            ) : (
              <>
                <Bar share={cached / EXAMPLE.blocks} />
                {cached}
              </>
            ),
        },
        { name: 'To prefill', cell: ({ prefill }) => step >= 2 && prefill },
        { name: 'Decoding', cell: ({ decode }) => step >= 2 && decode },
        {
          name: 'Cost',
          cell: ({ prefill, decode, cost }) => step >= 2 && `${EXAMPLE.weight} × ${prefill} + ${decode} = ${cost}`,
        },
      ]}
    />
  );
}

const useStyles = stylesOf((theme) => ({
  table: {
    minWidth: 560,
    tableLayout: 'fixed',
    '& th, & td': { height: 48 },
    '& th': { fontWeight: theme.typography.fontWeightMedium },
    '& tr': { '@media (prefers-reduced-motion: no-preference)': { transition: 'background 400ms' } },
  },
  chosen: {
    background: theme.colors.action.selected,
    boxShadow: `inset 3px 0 0 ${theme.colors.primary.main}`,
  },
}));
